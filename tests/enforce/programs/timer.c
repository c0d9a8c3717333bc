/* C11: 20,000 sends of 100 bytes on one TCP connection while a timer of 100 us interrupts (SA_RESTART).
 *
 * timer send|sendmsg HOST PORT: the arrival log must count 2,000,000 bytes, not one more. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks;

static void tick(int number) {
  (void)number;
  ticks++;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  int message = !strcmp(argv[1], "sendmsg"), failed = 0;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[3]))};
  inet_pton(AF_INET, argv[2], &at.sin_addr);
  int sock = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(sock, (struct sockaddr *)&at, sizeof at)) return 3;
  struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &every, NULL);
  char payload[100] = {0};
  for (int i = 0; i < 20000; i++) {
    for (size_t done = 0; done < sizeof payload;) {
      struct iovec part = {payload + done, sizeof payload - done};
      struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
      ssize_t sent = message ? sendmsg(sock, &header, 0) : send(sock, part.iov_base, part.iov_len, 0);
      if (sent < 0) {
        failed++;
        break;
      }
      done += (size_t)sent;
    }
  }
  setitimer(ITIMER_REAL, &never, NULL);
  shutdown(sock, SHUT_WR);
  while (recv(sock, payload, sizeof payload, 0) > 0) { /* until the other side has taken it all */
  }
  const char *path = getenv("PROBE_REPORT");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return 4;
  fprintf(file, "{\"failed\": %d, \"ticks\": %d}\n", failed, (int)ticks);
  return fclose(file) ? 4 : 0;
}
