/* C02: a thread flips the address between two hosts while the main thread sends with it.
 *
 * flip CALL ALLOWED DENIED PORT TIMES pinned|free
 * CALL: sendto, sendmsg, sendmmsg, connect (a UDP connect, then a send on the association).
 * The report (PROBE_REPORT) says how many calls the kernel took. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address;
static volatile in_addr_t *place;
static in_addr_t allowed, denied;
static volatile int going = 1;

static void pin(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void *flip(void *pinned) {
  if (pinned) pin();
  while (going) {
    *place = denied;
    if (pinned) sched_yield();
    *place = allowed;
    if (pinned) sched_yield();
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  const char *call = argv[1];
  int times = atoi(argv[5]), pinned = !strcmp(argv[6], "pinned"), taken = 0;
  inet_pton(AF_INET, argv[2], &allowed);
  inet_pton(AF_INET, argv[3], &denied);
  address.sin_family = AF_INET;
  address.sin_port = htons(atoi(argv[4]));
  place = &address.sin_addr.s_addr;
  *place = allowed;
  int sock = socket(AF_INET, SOCK_DGRAM, 0);
  struct iovec part = {"flip", 4};
  struct mmsghdr many[2];
  memset(many, 0, sizeof many);
  for (int i = 0; i < 2; i++)
    many[i].msg_hdr = (struct msghdr){.msg_name = &address, .msg_namelen = sizeof address,
                                      .msg_iov = &part, .msg_iovlen = 1};
  if (pinned) pin();
  pthread_t thread;
  pthread_create(&thread, NULL, flip, pinned ? (void *)1 : NULL);
  for (int i = 0; i < times; i++) {
    if (!strcmp(call, "sendto"))
      taken += sendto(sock, "flip", 4, 0, (struct sockaddr *)&address, sizeof address) == 4;
    else if (!strcmp(call, "sendmsg"))
      taken += sendmsg(sock, &many[0].msg_hdr, 0) == 4;
    else if (!strcmp(call, "sendmmsg"))
      taken += sendmmsg(sock, many, 2, 0) > 0;
    else if (!connect(sock, (struct sockaddr *)&address, sizeof address))
      taken += send(sock, "flip", 4, 0) == 4;
    else { /* a refused connect leaves the last association: take a fresh socket */
      close(sock);
      sock = socket(AF_INET, SOCK_DGRAM, 0);
    }
  }
  going = 0;
  pthread_join(thread, NULL);
  const char *path = getenv("PROBE_REPORT");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return 3;
  fprintf(file, "{\"taken\": %d}\n", taken);
  return fclose(file) ? 3 : 0;
}
