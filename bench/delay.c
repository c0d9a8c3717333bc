/* A path of 1 ms: two network namespaces joined by TUN devices and a delay line of 0.5 ms each way.
 *
 * delay NEAR FAR PORT: needs root (of a user namespace at least) and /dev/net/tun. Prints "ready" and serves
 * until killed. This process stays in the near namespace (10.98.0.1 side), so that others can join it;
 * a child accepts and closes on FAR:PORT in the far one. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ONE_WAY_NS = 500000, PACKETS = 256, MTU = 2048 };

struct packet {
  uint64_t due;
  int length;
  char bytes[MTU];
};

struct line {
  int from, to;
  unsigned head, tail;
  struct packet queue[PACKETS];
};

static void must(int held, const char *what) {
  if (!held) {
    perror(what);
    exit(3);
  }
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int tun(const char *local) {
  int device = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  must(device >= 0, "/dev/net/tun");
  struct ifreq request;
  memset(&request, 0, sizeof request);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  strcpy(request.ifr_name, "path0");
  must(!ioctl(device, TUNSETIFF, &request), "TUNSETIFF");
  int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in *at = (struct sockaddr_in *)&request.ifr_addr;
  memset(at, 0, sizeof *at);
  at->sin_family = AF_INET;
  inet_pton(AF_INET, local, &at->sin_addr);
  must(!ioctl(sock, SIOCSIFADDR, &request), "SIOCSIFADDR");
  inet_pton(AF_INET, "255.255.255.0", &at->sin_addr);
  must(!ioctl(sock, SIOCSIFNETMASK, &request), "SIOCSIFNETMASK");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  must(!ioctl(sock, SIOCSIFFLAGS, &request), "SIOCSIFFLAGS");
  close(sock);
  return device;
}

static void loopback_up(void) { /* the self-test of a run connects there */
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  must(!ioctl(sock, SIOCSIFFLAGS, &request), "loopback");
  close(sock);
}

static void take(struct line *line) {
  while (line->head - line->tail < PACKETS) {
    struct packet *packet = &line->queue[line->head % PACKETS];
    packet->length = (int)read(line->from, packet->bytes, MTU);
    if (packet->length <= 0) return;
    packet->due = now() + ONE_WAY_NS;
    line->head++;
  }
}

static void give(struct line *line) {
  while (line->tail != line->head && line->queue[line->tail % PACKETS].due <= now()) {
    struct packet *packet = &line->queue[line->tail % PACKETS];
    if (write(line->to, packet->bytes, (size_t)packet->length) < 0 && errno == EAGAIN) return;
    line->tail++;
  }
}

static void serve(const char *local, int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, local, &at.sin_addr);
  int sock = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  must(!bind(sock, (struct sockaddr *)&at, sizeof at) && !listen(sock, 128), "listen");
  if (fork()) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) close(accept(sock, NULL, NULL));
}

int main(int argc, char **argv) {
  static struct line lines[2];
  if (argc != 4) return 2;
  must(!unshare(CLONE_NEWNET), "unshare");
  int far = tun(argv[2]);
  serve(argv[2], atoi(argv[3]));
  must(!unshare(CLONE_NEWNET), "unshare"); /* the far one lives on by its server and its device */
  loopback_up();
  int near = tun(argv[1]);
  lines[0].from = lines[1].to = near;
  lines[1].from = lines[0].to = far;
  puts("ready");
  fflush(stdout);
  for (;;) {
    uint64_t wake = UINT64_MAX;
    for (int i = 0; i < 2; i++)
      if (lines[i].tail != lines[i].head && lines[i].queue[lines[i].tail % PACKETS].due < wake)
        wake = lines[i].queue[lines[i].tail % PACKETS].due;
    struct pollfd devices[2] = {{near, POLLIN, 0}, {far, POLLIN, 0}};
    uint64_t from = now();
    struct timespec wait = {0, wake > from ? (long)(wake - from) : 0};
    ppoll(devices, 2, wake == UINT64_MAX ? NULL : &wait, NULL);
    for (int i = 0; i < 2; i++) take(&lines[i]);
    for (int i = 0; i < 2; i++) give(&lines[i]);
  }
}
