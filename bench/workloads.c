/* What the runtime rows of the table measure, from inside the measured process.
 *
 * workloads null|pipe|send|connect TIMES OUTPUT
 * workloads null-floor|pipe-floor|send-floor|connect-floor TIMES OUTPUT
 * workloads path TIMES OUTPUT HOST PORT
 *
 * OUTPUT gets one JSON line: nanoseconds per operation, the same by the clock on the wall, and the median of
 * the connect call alone. null, pipe and send: time of the thread, the median over chunks of the work.
 * connect and path: the clock on the wall, the median over operations. What else runs on the machine disturbs
 * the fewest so; what a call waits for another process is on the wall only.
 *   null     getppid(2)
 *   pipe     write and read of one byte through a pipe
 *   send     send of 64 bytes on a connected TCP socket (a NULL address), drained by a thread
 *   connect  the process owns the listener: socket, connect, accept, close of both ends
 *   path     socket, connect, close to HOST and PORT, where somebody else accepts
 * The floors are what the mechanism costs by itself: a filter of one instruction; and for connect, one that
 * notifies a process that does nothing but let the call go on. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNKS = 20 };
/* linux/seccomp.h since Linux 6.6: SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP */
enum { SET_FLAGS = 0x40082104, SYNC_WAKE_UP = 1 };

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Time of this thread alone: what others do on the machine is not in it. */
static uint64_t own(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct span {
  uint64_t own, wall;
};

static struct span begin(void) { return (struct span){own(), now()}; }

static struct span since(struct span start) {
  return (struct span){own() - start.own, now() - start.wall};
}

static void must(int held, const char *what) {
  if (!held) {
    perror(what);
    exit(3);
  }
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static int listener(struct sockaddr_in *at) {
  socklen_t length = sizeof *at;
  int sock = socket(AF_INET, SOCK_STREAM, 0);
  memset(at, 0, sizeof *at);
  at->sin_family = AF_INET;
  at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(!bind(sock, (struct sockaddr *)at, sizeof *at) && !listen(sock, 16), "listen");
  must(!getsockname(sock, (struct sockaddr *)at, &length), "getsockname");
  return sock;
}

static void *drain(void *of) {
  char buffer[65536];
  int sock = *(int *)of;
  while (read(sock, buffer, sizeof buffer) > 0) {
  }
  return NULL;
}

static struct span null_calls(long times) {
  struct span start = begin();
  for (long i = 0; i < times; i++) syscall(SYS_getppid);
  return since(start);
}

static struct span pipe_calls(long times) {
  int ends[2];
  char byte = 'x';
  must(!pipe(ends), "pipe");
  struct span start = begin();
  for (long i = 0; i < times; i++)
    must(write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1, "pipe i/o");
  return since(start);
}

static struct span send_calls(long times) {
  struct sockaddr_in at;
  char payload[64] = {0};
  int heard = listener(&at), sock = socket(AF_INET, SOCK_STREAM, 0);
  must(!connect(sock, (struct sockaddr *)&at, sizeof at), "connect");
  int peer = accept(heard, NULL, NULL);
  pthread_t thread;
  must(!pthread_create(&thread, NULL, drain, &peer), "thread");
  struct span start = begin();
  for (long i = 0; i < times; i++) must(send(sock, payload, sizeof payload, 0) == 64, "send");
  struct span took = since(start);
  close(sock);
  pthread_join(thread, NULL);
  return took;
}

static void connects(long times, uint64_t *each, uint64_t *whole, const struct sockaddr_in *to) {
  struct sockaddr_in at;
  int heard = to ? -1 : listener(&at);
  if (to) at = *to;
  for (long i = 0; i < times; i++) {
    uint64_t start = now();
    int sock = socket(AF_INET, SOCK_STREAM, 0);
    uint64_t before = now();
    must(!connect(sock, (struct sockaddr *)&at, sizeof at), "connect");
    each[i] = now() - before;
    if (heard >= 0) close(accept(heard, NULL, NULL));
    close(sock);
    whole[i] = now() - start;
  }
  if (heard >= 0) close(heard);
}

static int install(struct sock_filter *code, unsigned short count, unsigned flags) {
  struct sock_fprog program = {count, code};
  must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  int found = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  must(found >= 0, "filter");
  return found;
}

/* The least that any filter costs: one instruction, which allows. */
static void filter(void) {
  struct sock_filter allow = {0x06, 0, 0, SECCOMP_RET_ALLOW};
  install(&allow, 1, 0);
}

/* The least that a notified connect costs: a process that lets each go on. Returns its id. */
static pid_t notify(void) {
  struct sock_filter code[] = {{0x20, 0, 0, 0},
                               {0x15, 0, 1, SYS_connect},
                               {0x06, 0, 0, SECCOMP_RET_USER_NOTIF},
                               {0x06, 0, 0, SECCOMP_RET_ALLOW}};
  int listener = install(code, 4, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  pid_t helper = fork();
  must(helper >= 0, "fork");
  if (helper) {
    close(listener);
    return helper;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ioctl(listener, SET_FLAGS, SYNC_WAKE_UP);
  for (;;) {
    struct seccomp_notif call = {0};
    struct seccomp_notif_resp answer = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) continue;
    answer.id = call.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

/* Whether *name* is *work*, or its floor. */
static int is(const char *name, const char *work) {
  size_t length = strlen(work);
  return !strncmp(name, work, length) && (!name[length] || !strcmp(name + length, "-floor"));
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 6) return 2;
  const char *work = argv[1];
  long times = atol(argv[2]) / CHUNKS;
  struct sockaddr_in to = {.sin_family = AF_INET};
  if (argc == 6) {
    to.sin_port = htons((uint16_t)atoi(argv[5]));
    must(inet_pton(AF_INET, argv[4], &to.sin_addr) == 1, "address");
  }
  long all = times * CHUNKS;
  uint64_t took[CHUNKS] = {0}, wall[CHUNKS] = {0}, *each = calloc((size_t)all, sizeof *each);
  uint64_t *whole = calloc((size_t)all, sizeof *whole);
  int connecting = is(work, "connect") || (is(work, "path") && argc == 6);
  int floor = strstr(work, "-floor") != NULL;
  must(each && whole, "memory");
  pid_t helper = floor && connecting ? notify() : 0;
  if (floor && !connecting) filter();
  if (connecting) connects(all, each, whole, argc == 6 ? &to : NULL);
  if (helper) must(!kill(helper, SIGKILL) && waitpid(helper, NULL, 0) == helper, "end");
  for (int i = 0; i < CHUNKS && !connecting; i++) {
    struct span one;
    if (is(work, "null")) one = null_calls(times);
    else if (is(work, "pipe")) one = pipe_calls(times);
    else if (is(work, "send")) one = send_calls(times);
    else return 2;
    took[i] = one.own;
    wall[i] = one.wall;
  }
  qsort(took, CHUNKS, sizeof *took, ascending);
  qsort(wall, CHUNKS, sizeof *wall, ascending);
  qsort(each, (size_t)all, sizeof *each, ascending);
  qsort(whole, (size_t)all, sizeof *whole, ascending);
  double whole_median = (double)whole[all / 2], chunk = (double)times;
  double operation = connecting ? whole_median : (double)took[CHUNKS / 2] / chunk;
  double on_wall = connecting ? whole_median : (double)wall[CHUNKS / 2] / chunk;
  FILE *file = fopen(argv[3], "w");
  must(file != NULL, "output");
  fprintf(file, "{\"operation\": %.1f, \"wall\": %.1f, \"median_connect\": %lu}\n", operation,
          on_wall, (unsigned long)each[all / 2]);
  return fclose(file) ? 3 : 0;
}
