/* What gets through: streams, datagrams, descriptors, with every byte counted at both ends. */
#include "soak.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum { PATIENCE = 30, WINDOW = 16, TOGETHER = 8, PAIR = 1 << 20 };

struct page *page;

void count(enum counter what, uint64_t times) {
  __atomic_add_fetch(&page->counted[what], times, __ATOMIC_RELAXED);
}

void fail(const char *what, int error) {
  if (__atomic_fetch_add(&page->counted[failed], 1, __ATOMIC_RELAXED) == 0)
    snprintf(page->first, sizeof page->first, "%s: %s", what, strerror(error));
}

int over(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec > page->until;
}

struct sockaddr_in inet(const char *host, int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, host, &at.sin_addr);
  return at;
}

void fill(unsigned char *bytes, size_t length, uint64_t from) {
  for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)((from + i) % PERIOD);
}

/* Close with a reset: a soak would use up the ports by waiting. */
int let_go(int sock) {
  struct linger at_once = {1, 0};
  setsockopt(sock, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return close(sock);
}

static int reach(const char *host, int port) {
  struct sockaddr_in at = inet(host, port);
  int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (sock < 0) return fail("socket", errno), -1;
  for (;;) {
    if (port == STORMS) count(storm_calls, 1);
    if (!connect(sock, (struct sockaddr *)&at, sizeof at)) return sock;
    if (port != STORMS || (errno != EINTR && errno != EALREADY && errno != EISCONN)) break;
    if (errno == EISCONN) return sock; /* interrupted, and then through */
    count(interrupted, 1);
  }
  fail("connect", errno);
  close(sock);
  return -1;
}

static ssize_t once(int sock, unsigned char *bytes, size_t length, int turn) {
  struct iovec parts[2] = {{bytes, length / 2}, {bytes + length / 2, length - length / 2}};
  struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};
  struct mmsghdr headers = {.msg_hdr = header};
  switch (turn % 5) {
    case 0: return send(sock, bytes, length, 0);
    case 1: return sendmsg(sock, &header, 0);
    case 2: return sendto(sock, bytes, length, MSG_NOSIGNAL, NULL, 0);
    case 3: return writev(sock, parts, 2);
    default: return sendmmsg(sock, &headers, 1, 0) == 1 ? (ssize_t)headers.msg_len : -1;
  }
}

static int read_count(int sock, uint64_t *told) {
  struct timeval limit = {PATIENCE, 0};
  setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  for (;;) {
    ssize_t got = recv(sock, told, sizeof *told, MSG_WAITALL);
    if (got == sizeof *told) return 1;
    if (got < 0 && errno == EINTR) continue; /* as bare, with a time limit */
    return 0;
  }
}

/* One connection: so many messages of all lengths and calls, and the receiver's count held against ours. */
int exchange(const char *host, int port, int messages, int turn) {
  static __thread unsigned char bytes[1 << 17];
  uint64_t at = 0, told = 0;
  int storm = port == STORMS, away = !strcmp(host, ALLOWED);
  int sock = reach(host, port);
  if (sock < 0) return 0;
  count(storm ? tcp_storm : away ? tcp_allowed : tcp_loopback, 1);
  for (int i = 0; i < messages; i++) {
    size_t length = 1 + (size_t)(i * 37 + turn * 101) % 1400;
    if (i % 256 == 255) length = sizeof bytes; /* more than a socket takes at once */
    fill(bytes, length, at);
    for (size_t done = 0; done < length;) {
      ssize_t sent = once(sock, bytes + done, length - done, turn + i);
      if (sent < 0 && errno == EINTR && storm) {
        count(interrupted, 1);
        continue;
      }
      if (sent <= 0) {
        fail("send", errno);
        let_go(sock);
        return 0;
      }
      done += (size_t)sent;
      at += (size_t)sent;
    }
  }
  count(storm ? bytes_storm : away ? bytes_allowed : bytes_loopback, at);
  shutdown(sock, SHUT_WR);
  if (!read_count(sock, &told)) fail("no count from the receiver", errno);
  else if (told != at) fail(told < at ? "bytes were lost" : "bytes were doubled", 0);
  let_go(sock);
  count(operations, 1 + (uint64_t)messages);
  return 1;
}

void connects(int index) {
  for (int turn = index; !over(); turn++) exchange(turn % 2 ? ALLOWED : LOOPBACK, STREAMS, 1, turn);
}

void streams(int index) {
  for (int turn = index; !over(); turn++)
    exchange(turn % 2 ? ALLOWED : LOOPBACK, STREAMS, 1 + turn * 97 % 600, turn);
}

/* One window of datagrams by one of the calls, and the receiver's count. */
void datagrams_once(int sender, const char *host, int turn) {
  static __thread uint32_t next[2];
  static __thread struct datagram out[WINDOW];
  int away = !strcmp(host, ALLOWED), how = turn % 4;
  struct sockaddr_in at = inet(host, DATAGRAMS + sender);
  struct iovec parts[WINDOW];
  struct mmsghdr headers[WINDOW];
  uint64_t told = 0, bytes = 0;
  int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (how == 3 && connect(sock, (struct sockaddr *)&at, sizeof at)) fail("udp connect", errno);
  for (int i = 0; i < WINDOW; i++) {
    size_t length = 8 + (size_t)(i * 83 + turn * 7) % sizeof out[i].rest;
    out[i].number = next[away]++;
    out[i].answer = i == WINDOW - 1;
    fill(out[i].rest, length - 8, out[i].number);
    parts[i] = (struct iovec){&out[i], length};
    headers[i] = (struct mmsghdr){{&at, sizeof at, &parts[i], 1, NULL, 0, 0}, 0};
    bytes += length;
    ssize_t sent = (ssize_t)length;
    if (how == 0) sent = sendto(sock, &out[i], length, 0, (struct sockaddr *)&at, sizeof at);
    if (how == 1) sent = sendmsg(sock, &headers[i].msg_hdr, 0);
    if (how == 3) sent = send(sock, &out[i], length, 0);
    if (sent != (ssize_t)length) fail("datagram", errno);
  }
  for (int done = 0; how == 2 && done < WINDOW;) {
    int left = WINDOW - done, sent = sendmmsg(sock, headers + done, left < TOGETHER ? left : TOGETHER, 0);
    if (sent <= 0) return fail("sendmmsg", errno), (void)close(sock);
    for (int i = done; i < done + sent; i++)
      if (headers[i].msg_len != parts[i].iov_len) fail("msg_len", 0);
    done += sent;
  }
  count(away ? udp_allowed : udp_loopback, WINDOW);
  count(away ? udp_bytes_allowed : udp_bytes_loopback, bytes);
  count(away ? named_allowed : named_loopback, how == 3 ? 1 : WINDOW);
  if (!read_count(sock, &told)) fail("no count of datagrams", errno);
  else if ((uint32_t)told != next[away]) fail("datagrams were lost or doubled", 0);
  close(sock);
  count(operations, WINDOW);
}

void datagrams(int index) {
  for (int turn = index; !over(); turn++) datagrams_once(index, turn % 2 ? ALLOWED : LOOPBACK, turn / 2);
}

/* Receive descriptors until the other end closes; write a token through each. */
static void take(int sock) {
  for (;;) {
    uint64_t token;
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&token, sizeof token};
    struct msghdr header = {NULL, 0, &part, 1, control, sizeof control, 0};
    ssize_t got = recvmsg(sock, &header, MSG_CMSG_CLOEXEC);
    struct cmsghdr *found = CMSG_FIRSTHDR(&header);
    if (got != sizeof token) _exit(got ? 4 : 0);
    if (!found || found->cmsg_type != SCM_RIGHTS) _exit(5);
    int file;
    memcpy(&file, CMSG_DATA(found), sizeof file);
    if (write(file, &token, sizeof token) != sizeof token) _exit(6);
    close(file);
  }
}

static void pass(int sock, uint64_t token, int together) {
  int ends[2];
  char control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {&token, sizeof token};
  struct mmsghdr header = {{NULL, 0, &part, 1, control, sizeof control, 0}, 0};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&header.msg_hdr);
  if (pipe(ends)) return fail("pipe", errno);
  *rights = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  memcpy(CMSG_DATA(rights), &ends[1], sizeof(int));
  ssize_t sent = together ? (sendmmsg(sock, &header, 1, 0) == 1 ? (ssize_t)header.msg_len : -1)
                          : sendmsg(sock, &header.msg_hdr, 0);
  close(ends[1]);
  uint64_t seen = 0;
  if (sent != sizeof token) fail("passing a descriptor", errno);
  else count(passed, 1);
  if (read(ends[0], &seen, sizeof seen) == sizeof seen && seen == token) count(taken, 1);
  if (read(ends[0], &seen, 1) != 0) fail("a passed descriptor stays open", 0);
  close(ends[0]);
  count(operations, 1);
}

/* Descriptors over unix socket pairs of each type. Every hundred a new receiver. */
void rights(int index) {
  const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
  for (int turn = index; !over(); turn++) {
    int pair[2], status;
    if (socketpair(AF_UNIX, types[turn % 2], 0, pair)) return fail("socketpair", errno);
    pid_t child = fork();
    if (!child) {
      close(pair[0]);
      take(pair[1]);
    }
    close(pair[1]);
    for (int i = 0; i < 100 && !over(); i++) pass(pair[0], (uint64_t)turn << 32 | (uint64_t)i, i % 2);
    close(pair[0]);
    if (waitpid(child, &status, 0) != child || status) fail("receiver of descriptors", 0);
  }
}

/* Unix sockets by a path or an abstract name, each new: whose they are has to be found out each time. */
void named(int index) {
  for (int turn = index; !over(); turn++) {
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "soak.sock"};
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 9 + (turn % 2 == 0);
    if (turn % 2) memcpy(at.sun_path, "\0soak.nam", 9);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&at, length) || listen(listener, 4)) fail("unix bind", errno);
    if (connect(sock, (struct sockaddr *)&at, length)) fail("unix connect", errno);
    else count(unix_connects, 1);
    int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (peer >= 0) {
      count(unix_accepts, 1);
      close(peer);
    }
    close(sock);
    close(listener);
    if (turn % 2 == 0) unlink(at.sun_path);
    count(operations, 1);
    usleep(10000);
  }
}

static void read_pair(int sock) {
  static unsigned char bytes[65536];
  uint64_t at = 0, wrong = 0;
  exchange(LOOPBACK, STREAMS, 1, 0); /* while the other end sleeps in its send */
  for (ssize_t got; (got = read(sock, bytes, sizeof bytes)) > 0; at += (uint64_t)got)
    for (ssize_t i = 0; i < got; i++) wrong += bytes[i] != (at + (uint64_t)i) % PERIOD;
  count(pair_read, at);
  _exit(wrong != 0);
}

/* A send larger than the socket, to a reader that has to connect before it reads. */
void pairs(int index) {
  static unsigned char bytes[PAIR];
  for (int turn = index; !over(); turn++) {
    int pair[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return fail("socketpair", errno);
    pid_t child = fork();
    if (!child) {
      close(pair[0]);
      read_pair(pair[1]);
    }
    close(pair[1]);
    fill(bytes, sizeof bytes, 0);
    for (size_t done = 0; done < sizeof bytes;) {
      struct iovec part = {bytes + done, sizeof bytes - done};
      struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
      ssize_t sent = sendmsg(pair[0], &header, 0);
      if (sent <= 0) {
        fail("sendmsg on a pair", errno);
        break;
      }
      done += (size_t)sent;
      count(pair_sent, (uint64_t)sent);
    }
    close(pair[0]);
    if (waitpid(child, &status, 0) != child || status) fail("reader of a pair", 0);
    count(operations, 1);
    usleep(20000);
  }
}
