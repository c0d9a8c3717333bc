/* The outside of a soak: owns a fresh network namespace, counts what arrives in it.
 *
 * serve: brings the loopback link up, gives it the addresses, prints "ready". Each line on standard input is
 * answered by one JSON line of what arrived so far, once nothing more is pending. */
#include "soak.h"

#include <net/if.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

enum kind { LISTENER, STREAM, BOX };

struct place {
  const char *host;
  int port;
  enum kind kind;
  uint64_t times, bytes, wrong;
};

struct watched {
  int file, told;
  enum kind kind;
  struct place *place;
  uint64_t at;
};

static struct place places[64];
static int count_of_places, polled;
static unsigned char buffer[1 << 18];

static void must(int held, const char *what) {
  if (!held) {
    perror(what);
    exit(3);
  }
}

static void give(int sock, const char *name, const char *address) {
  struct ifreq request = {0};
  struct sockaddr_in at = inet(address, 0);
  strcpy(request.ifr_name, name);
  memcpy(&request.ifr_addr, &at, sizeof at);
  must(!ioctl(sock, SIOCSIFADDR, &request), name);
  at = inet("255.255.255.255", 0);
  memcpy(&request.ifr_addr, &at, sizeof at);
  must(!ioctl(sock, SIOCSIFNETMASK, &request), name);
}

static void link_up(void) {
  int sock = socket(AF_INET, SOCK_DGRAM, 0);
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK};
  must(!ioctl(sock, SIOCSIFFLAGS, &request), "lo");
  give(sock, "lo:1", ALLOWED);
  give(sock, "lo:2", DENIED);
  give(sock, "lo:3", ELSEWHERE);
  close(sock);
}

static void watch(int file, enum kind kind, struct place *place) {
  struct watched *watched = calloc(1, sizeof *watched);
  must(watched != NULL, "memory");
  *watched = (struct watched){file, 0, kind, place, 0};
  struct epoll_event event = {EPOLLIN, {.ptr = watched}};
  must(!epoll_ctl(polled, EPOLL_CTL_ADD, file, &event), "epoll_ctl");
}

static int bound(const char *host, int port, int type) {
  struct sockaddr_in at = inet(host, port);
  int sock = socket(AF_INET, type | SOCK_NONBLOCK, 0), yes = 1, size = 1 << 22;
  setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (type == SOCK_DGRAM) setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  must(!bind(sock, (struct sockaddr *)&at, sizeof at), "bind");
  return sock;
}

static void receive(const char *host, int port, enum kind kind) {
  struct place *place = &places[count_of_places++];
  *place = (struct place){.host = host, .port = port, .kind = kind};
  int sock = bound(host, port, kind == BOX ? SOCK_DGRAM : SOCK_STREAM);
  if (kind == LISTENER) must(!listen(sock, 4096), "listen");
  watch(sock, kind, place);
}

/* A listener whose backlog is full and stays so. */
static void full(const char *host) {
  struct sockaddr_in at = inet(host, FULL);
  must(!listen(bound(host, FULL, SOCK_STREAM), 0), "listen");
  for (int i = 0; i < 4; i++) {
    int sock = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(sock, (struct sockaddr *)&at, sizeof at);
  }
}

static uint64_t misplaced(const unsigned char *bytes, size_t length, uint64_t from) {
  uint64_t wrong = 0;
  for (size_t i = 0; i < length; i++) wrong += bytes[i] != (from + i) % PERIOD;
  return wrong;
}

static void accepted(struct watched *of) {
  for (int sock; (sock = accept4(of->file, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
    of->place->times++;
    watch(sock, STREAM, of->place);
  }
}

/* Take what a stream brings; at its end tell how many bytes were in their place, and wait to be let go. */
static void streamed(struct watched *of, uint32_t events) {
  if (of->told || (events & (EPOLLERR | EPOLLHUP))) {
    close(of->file);
    free(of);
    return;
  }
  ssize_t got = read(of->file, buffer, sizeof buffer);
  if (got < 0) return;
  of->place->wrong += misplaced(buffer, (size_t)got, of->at);
  of->place->bytes += (uint64_t)got;
  of->at += (uint64_t)got;
  if (got) return;
  struct epoll_event silent = {0, {.ptr = of}};
  of->told = 1;
  must(!epoll_ctl(polled, EPOLL_CTL_MOD, of->file, &silent), "epoll_ctl");
  send(of->file, &of->at, sizeof of->at, MSG_NOSIGNAL);
}

static void boxed(struct watched *of) {
  struct datagram *seen = (struct datagram *)buffer;
  for (;;) {
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    ssize_t got = recvfrom(of->file, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &length);
    if (got < 0) return;
    of->place->times++;
    of->place->bytes += (uint64_t)got;
    if (got < 8 || seen->number != of->at) of->place->wrong++;
    else of->place->wrong += misplaced(seen->rest, (size_t)got - 8, seen->number);
    of->at++;
    if (got >= 8 && seen->answer)
      sendto(of->file, &of->at, sizeof of->at, 0, (struct sockaddr *)&from, length);
  }
}

static int turn(int milliseconds) {
  struct epoll_event events[64];
  int found = epoll_wait(polled, events, 64, milliseconds), asked = 0;
  for (int i = 0; i < found; i++) {
    struct watched *of = events[i].data.ptr;
    if (!of) asked = 1;
    else if (of->kind == LISTENER) accepted(of);
    else if (of->kind == STREAM) streamed(of, events[i].events);
    else boxed(of);
  }
  return asked ? -1 : found;
}

static void answer(void) {
  printf("[");
  for (int i = 0; i < count_of_places; i++) {
    struct place *p = &places[i];
    printf("%s{\"protocol\": \"%s\", \"to\": \"%s:%d\", \"times\": %lu, \"bytes\": %lu, \"wrong\": %lu}",
           i ? ", " : "", p->kind == BOX ? "udp" : "tcp", p->host, p->port,
           (unsigned long)p->times, (unsigned long)p->bytes, (unsigned long)p->wrong);
  }
  printf("]\n");
  fflush(stdout);
}

int main(void) {
  struct rlimit files = {65536, 65536};
  setrlimit(RLIMIT_NOFILE, &files); /* more than the default is a favour */
  link_up();
  polled = epoll_create1(0);
  struct epoll_event input = {EPOLLIN, {.ptr = NULL}};
  must(!epoll_ctl(polled, EPOLL_CTL_ADD, 0, &input), "standard input");
  const char *hosts[] = {ALLOWED, LOOPBACK, DENIED, ELSEWHERE};
  for (int i = 0; i < 4; i++) {
    receive(hosts[i], STREAMS, LISTENER);
    receive(hosts[i], STORMS, LISTENER);
    for (int sender = 0; sender < SENDERS; sender++) receive(hosts[i], DATAGRAMS + sender, BOX);
  }
  full(ALLOWED);
  full(LOOPBACK);
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    if (turn(-1) >= 0) continue;
    char line[64];
    if (read(0, line, sizeof line) <= 0) return 0;
    while (turn(20) > 0) {
    }
    answer();
  }
}
