/* What the load of a soak, its parts and its receivers agree on: addresses, the pattern, the counters.
 *
 * A stream's byte at position k is k % 251, and each end counts: a byte that is lost, doubled or out of
 * place shows in its place, not only in a sum. A datagram begins with its sequence number on its port. */
#ifndef SOAK_H
#define SOAK_H
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#define ALLOWED "10.99.0.1"
#define DENIED "10.99.0.2"
#define ELSEWHERE "10.99.0.3" /* named by no rule */
#define LOOPBACK "127.0.0.1"
#define OWN "127.0.0.2" /* where the load listens itself */

enum {
  STREAMS = 9000,   /* takes all bytes, tells their number at the end */
  STORMS = 9001,    /* the same, for connects that signals interrupt */
  FULL = 9002,      /* a listener with a full backlog: connects sleep */
  DATAGRAMS = 9100, /* one port for each sender of datagrams */
  SENDERS = 8,
  PERIOD = 251,
  SURVIVORS = 5,
  BLOCKED = 50,
};

struct datagram {
  uint32_t number;
  uint32_t answer; /* not 0: the receiver says how many it has */
  unsigned char rest[1392];
};

/* What the load counts. Those of one group are held against each other by the judge, by name. */
#define COUNTERS(X)                                                                                \
  X(operations) X(failed) X(signals) X(interrupted)                                                \
  X(tcp_allowed) X(tcp_loopback) X(tcp_storm) X(storm_calls)                                       \
  X(bytes_allowed) X(bytes_loopback) X(bytes_storm)                                                \
  X(udp_allowed) X(udp_loopback) X(udp_bytes_allowed) X(udp_bytes_loopback)                        \
  X(named_allowed) X(named_loopback)                                                               \
  X(own_connects) X(own_accepts) X(listens) X(unix_connects) X(unix_accepts)                        \
  X(passed) X(taken) X(pair_sent) X(pair_read)                                                     \
  X(forks) X(execs) X(threads)                                                                     \
  X(refused_denied) X(refused_probes) X(refused_elsewhere) X(refused_listens)                      \
  X(full_calls) X(full_timed_out) X(full_interrupted) X(full_killed)

#define ROW(name) name,
enum counter { COUNTERS(ROW) COUNTED };
#undef ROW

/* Shared by all processes of the load, and read by the bench while it runs. */
struct page {
  uint64_t until;  /* nanoseconds of CLOCK_MONOTONIC */
  uint8_t asleep[56]; /* not 0: the connect of this one sleeps now */
  uint64_t counted[COUNTED];
  int32_t survivors[SURVIVORS];
  char first[160]; /* the first failure in words */
};

extern struct page *page;

void count(enum counter what, uint64_t times);
void fail(const char *what, int error);
int over(void);
struct sockaddr_in inet(const char *host, int port);
void fill(unsigned char *bytes, size_t length, uint64_t from);
int let_go(int sock);
int exchange(const char *host, int port, int messages, int turn);
void datagrams_once(int sender, const char *host, int turn);

void connects(int index);
void streams(int index);
void datagrams(int index);
void own(int index);
void named(int index);
void rights(int index);
void pairs(int index);
void starts(int index);
void timers(int index);
void preempted(int index);
void refusals(int index);
void blocked(int index);
#endif
