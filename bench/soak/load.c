/* The contained side of a soak.
 *
 * load run PAGE REPORT SECONDS: works for so long, writes REPORT (JSON), leaves survivors behind and ends.
 * load once PAGE: one exchange, as a program of its own. PAGE is a file that the bench reads meanwhile. */
#include "soak.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

const char *page_path;

static const struct {
  const char *name;
  void (*work)(int index);
  int processes;
} KINDS[] = {
    {"connects", connects, 2}, {"streams", streams, 2},     {"datagrams", datagrams, 2},
    {"own", own, 1},           {"named", named, 1},         {"rights", rights, 2},
    {"pairs", pairs, 1},       {"starts", starts, 1},       {"timers", timers, 3},
    {"preempted", preempted, 1}, {"refusals", refusals, 2}, {"blocked", blocked, BLOCKED},
};

static int map(const char *path, int flags) {
  int file = open(path, O_RDWR | O_CLOEXEC | flags, 0644);
  if (file < 0 || (flags && ftruncate(file, sizeof *page))) return 0;
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  page_path = path;
  return page != MAP_FAILED;
}

static void work(void) {
  int started = 0, status;
  for (size_t kind = 0; kind < sizeof KINDS / sizeof *KINDS; kind++)
    for (int index = 0; index < KINDS[kind].processes; index++, started++)
      if (!fork()) {
        KINDS[kind].work(index);
        _exit(0);
      }
  while (started-- > 0)
    if (wait(&status) < 0 || status) fail("a worker died", status);
}

/* A daemon in a session of its own that ignores SIGTERM; the first sleeps in a connect. */
static void leave(int which) {
  int status;
  pid_t child = fork();
  if (child) {
    waitpid(child, &status, 0);
    return;
  }
  setsid();
  if (fork()) _exit(0);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  __atomic_store_n(&page->survivors[which], getpid(), __ATOMIC_RELEASE);
  struct sockaddr_in at = inet(ALLOWED, FULL);
  while (!which) connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&at, sizeof at);
  for (;;) pause();
}

static int report(const char *path) {
  FILE *file = fopen(path, "w");
  if (!file) return 4;
  fprintf(file, "{\"survivors\": [");
  for (int i = 0; i < SURVIVORS; i++) fprintf(file, "%s%d", i ? ", " : "", page->survivors[i]);
  fprintf(file, "], \"first_failure\": \"%s\"", page->first);
#define ROW(name) fprintf(file, ", \"%s\": %lu", #name, (unsigned long)page->counted[name]);
  COUNTERS(ROW)
#undef ROW
  fprintf(file, "}\n");
  return fclose(file) ? 4 : 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "once") && map(argv[2], 0)) return !exchange(ALLOWED, STREAMS, 2, 1);
  if (argc != 5 || strcmp(argv[1], "run") || !map(argv[2], O_CREAT | O_TRUNC)) return 2;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  page->until = ((uint64_t)t.tv_sec + (uint64_t)atol(argv[4])) * 1000000000u + (uint64_t)t.tv_nsec;
  work();
  count(full_calls, 1); /* of the survivor */
  for (int i = 0; i < SURVIVORS; i++) leave(i);
  for (int i = 0; i < SURVIVORS; i++)
    while (!__atomic_load_n(&page->survivors[i], __ATOMIC_ACQUIRE)) usleep(1000);
  usleep(100000);
  return report(argv[3]);
}
