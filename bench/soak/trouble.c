/* What gets in the way: signals, new processes and threads, refusals, connects that sleep. */
#include "soak.h"

#include <fcntl.h>
#include <linux/if_packet.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { PREEMPTED = 4, THREADS = 8, GUST = 40, BREAK = 30000 };

extern char **environ;

static long storm; /* microseconds between the signals of a storm; 0: there is none */

/* A storm has breaks: a call has to reach the supervisor between two signals, or it begins anew for ever. */
static void handled(int number) {
  static int since;
  (void)number;
  count(signals, 1);
  if (!storm || ++since % GUST) return;
  struct itimerval timer = {{0, storm}, {0, BREAK}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void handle(int number, int flags) {
  struct sigaction action = {.sa_handler = handled, .sa_flags = flags};
  sigaction(number, &action, NULL);
}

static void every(long microseconds) {
  struct itimerval timer = {{microseconds / 1000000, microseconds % 1000000},
                            {microseconds / 1000000, microseconds % 1000000}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void stormed(int sender, int turn) {
  exchange(ALLOWED, STORMS, 1 + turn * 31 % 300, turn);
  datagrams_once(sender, turn % 2 ? ALLOWED : LOOPBACK, turn);
}

/* A timer that interrupts every 100 us, 1 ms or 10 ms, restarting what it interrupts. */
void timers(int index) {
  const long intervals[] = {100, 1000, 10000};
  storm = intervals[index % 3];
  handle(SIGALRM, SA_RESTART);
  every(storm);
  for (int turn = index; !over(); turn++) stormed(2 + index, turn);
  every(0);
}

static volatile int running;

static void *preempt(void *of) {
  pid_t *tids = of;
  for (long turn = 0; running; turn++) {
    struct timespec pause = {0, turn % GUST ? 200000 : BREAK * 1000};
    for (int i = 0; i < PREEMPTED; i++)
      if (tids[i]) syscall(SYS_tgkill, getpid(), tids[i], SIGURG);
    nanosleep(&pause, NULL);
  }
  return NULL;
}

static pid_t preempted_tids[PREEMPTED];

static void *worked(void *of) {
  long index = (long)of;
  preempted_tids[index] = (pid_t)syscall(SYS_gettid);
  for (int turn = (int)index; !over(); turn++) {
    if (index) exchange(ALLOWED, STORMS, 1 + turn * 31 % 200, turn);
    else datagrams_once(5, turn % 2 ? ALLOWED : LOOPBACK, turn);
  }
  preempted_tids[index] = 0;
  return NULL;
}

/* Threads that one of them preempts all the time, as the runtime of Go does. */
void preempted(int index) {
  pthread_t threads[PREEMPTED], preempting;
  (void)index;
  handle(SIGURG, SA_RESTART | SA_ONSTACK);
  running = 1;
  for (long i = 0; i < PREEMPTED; i++) pthread_create(&threads[i], NULL, worked, (void *)i);
  pthread_create(&preempting, NULL, preempt, preempted_tids);
  for (int i = 0; i < PREEMPTED; i++) pthread_join(threads[i], NULL);
  running = 0;
  pthread_join(preempting, NULL);
}

/* Listen, connect to it, accept: all of one thread. */
static void *own_once(void *unused) {
  struct sockaddr_in at = inet(OWN, 0);
  socklen_t length = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 8)) fail("listen", errno);
  count(listens, 1);
  getsockname(listener, (struct sockaddr *)&at, &length);
  if (connect(sock, (struct sockaddr *)&at, sizeof at)) fail("own connect", errno);
  else count(own_connects, 1);
  struct timeval patience = {10, 0};
  setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  int peer = accept(listener, NULL, NULL);
  if (peer >= 0) {
    count(own_accepts, 1);
    let_go(peer);
  }
  let_go(sock);
  close(listener);
  count(operations, 1);
  return unused;
}

/* New threads all the time, each with a listener of its own. */
void own(int index) {
  (void)index;
  while (!over()) {
    pthread_t started[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&started[i], NULL, own_once, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(started[i], NULL);
    count(threads, THREADS);
  }
}

/* New processes all the time: forked, or spawned with a program that connects. */
void starts(int index) {
  extern const char *page_path;
  for (int turn = index; !over(); turn++) {
    int status = 0;
    pid_t child;
    if (turn % 2) {
      char *words[] = {"load", "once", (char *)page_path, NULL};
      if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ))
        return fail("posix_spawn", errno);
      count(execs, 1);
    } else {
      child = fork();
      if (!child) _exit(!exchange(ALLOWED, STREAMS, 2, turn));
      count(forks, 1);
    }
    if (waitpid(child, &status, 0) != child || status) fail("a started process", 0);
  }
}

static int refused_send(int how, struct sockaddr_in *at) {
  struct iovec part = {"denied", 6};
  struct mmsghdr headers[2] = {{{at, sizeof *at, &part, 1, NULL, 0, 0}, 0},
                               {{at, sizeof *at, &part, 1, NULL, 0, 0}, 0}};
  int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), result = 0;
  if (how == 0) result = (int)sendto(sock, "denied", 6, 0, (struct sockaddr *)at, sizeof *at);
  if (how == 1) result = (int)sendmsg(sock, &headers[0].msg_hdr, 0);
  if (how == 2) result = sendmmsg(sock, headers, 2, 0);
  if (how == 3) result = connect(sock, (struct sockaddr *)at, sizeof *at);
  int error = result < 0 ? errno : 0;
  close(sock);
  return error;
}

static int refused_connect(int how, struct sockaddr_in *at) {
  int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (how == 1 ? SOCK_NONBLOCK : 0), 0);
  int result = how == 2
                   ? (int)sendto(sock, "x", 1, MSG_FASTOPEN, (struct sockaddr *)at, sizeof *at)
                   : connect(sock, (struct sockaddr *)at, sizeof *at);
  int error = result < 0 ? errno : 0;
  close(sock);
  return error;
}

static int refused_mapped(void) {
  struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(STREAMS)};
  int sock = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  inet_pton(AF_INET6, "::ffff:" DENIED, &at.sin6_addr);
  int error = connect(sock, (struct sockaddr *)&at, sizeof at) < 0 ? errno : 0;
  close(sock);
  return error;
}

static int refused_listen(void) {
  struct sockaddr_in at = inet(ALLOWED, 0);
  int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bind(sock, (struct sockaddr *)&at, sizeof at);
  int error = listen(sock, 1) < 0 ? errno : 0;
  close(sock);
  return error;
}

static void expect(const char *what, int error, int wanted, enum counter counter) {
  if (error != wanted) fail(what, error);
  count(counter, 1);
  count(operations, 1);
}

/* Each way to a denied address, in turn. */
void refusals(int index) {
  for (int turn = index; !over(); turn++) {
    struct sockaddr_in stream = inet(DENIED, STREAMS), box = inet(DENIED, DATAGRAMS);
    struct sockaddr_in other = inet(ELSEWHERE, STREAMS), unspecified = box;
    unspecified.sin_family = AF_UNSPEC;
    int way = turn % 12, sock;
    if (way < 3) expect("refused connect", refused_connect(way, &stream), ECONNREFUSED, refused_denied);
    else if (way < 6) expect("refused send", refused_send(way - 3, &box), ECONNREFUSED, refused_denied);
    else if (way == 6) expect("refused probe", refused_send(3, &box), ECONNREFUSED, refused_probes);
    else if (way == 7) expect("AF_UNSPEC", refused_send(0, &unspecified), ECONNREFUSED, refused_denied);
    else if (way == 8) expect("mapped", refused_mapped(), ECONNREFUSED, refused_denied);
    else if (way == 9) expect("elsewhere", refused_connect(0, &other), ECONNREFUSED, refused_elsewhere);
    else if (way == 10) expect("refused listen", refused_listen(), EPERM, refused_listens);
    else {
      sock = socket(AF_VSOCK, SOCK_STREAM, 0);
      expect("refused family", sock < 0 ? errno : 0, EPERM, refused_elsewhere);
    }
    usleep(1000);
  }
}

static int sleeping(const struct sockaddr_in *at, int index, long limit) {
  struct timeval most = {limit / 1000, limit % 1000 * 1000};
  int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  page->asleep[index] = 1;
  count(full_calls, 1);
  int error = connect(sock, (const struct sockaddr *)at, sizeof *at) < 0 ? errno : 0;
  page->asleep[index] = 0;
  close(sock);
  return error;
}

static void killed_asleep(const struct sockaddr_in *at, int index) {
  int status;
  pid_t child = fork();
  if (!child) _exit(sleeping(at, index, 0));
  usleep(700000);
  kill(child, SIGKILL);
  if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) fail("a connect that should sleep", 0);
  page->asleep[index] = 0; /* it had no time to */
  count(full_killed, 1);
}

/* A connect that sleeps, to an end of each kind: its time is over, a signal comes, its process is killed. */
void blocked(int index) {
  struct sockaddr_in at = inet(index % 2 ? ALLOWED : LOOPBACK, FULL);
  handle(SIGALRM, 0);
  for (int turn = index; !over(); turn++) {
    int error;
    switch (turn % 3) {
      case 0:
        error = sleeping(&at, index, 900);
        if (error != EINPROGRESS) fail("a connect past its time", error);
        count(full_timed_out, 1);
        break;
      case 1:
        every(500000);
        error = sleeping(&at, index, 0);
        every(0);
        if (error != EINTR) fail("a connect interrupted", error);
        count(full_interrupted, 1);
        break;
      default: killed_asleep(&at, index);
    }
    count(operations, 1);
  }
}
