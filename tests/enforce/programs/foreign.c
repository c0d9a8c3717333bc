/* C22: calls past the 64-bit table: 32-bit calls by int 0x80, and a number of the x32 table.
 *
 * foreign HOST PORT: sends "foreign" over UDP by 32-bit socket(2), connect(2) and sendto(2); then the
 * same connect by its x32 number. x86_64 only. Errors are reported as numbers. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* numbers of asm/unistd_32.h */
enum { SOCKET_32 = 359, SENDTO_32 = 369, CONNECT_32 = 362 };
/* __X32_SYSCALL_BIT and the x86_64 number of connect, asm/unistd_x32.h */
enum { CONNECT_X32 = 0x40000000 + 42 };

static long call32(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  /* the sixth argument is ebp; built with -mno-red-zone, because of the push */
  __asm__ volatile(
      "push %%rbp\n\tmov %7, %%rbp\n\tint $0x80\n\tpop %%rbp"
      : "=a"(result)
      : "0"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e), "r"(f)
      : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  /* pointers of 32-bit calls must lie below 4 GiB */
  char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (low == MAP_FAILED) return 3;
  struct sockaddr_in *at = (struct sockaddr_in *)low;
  at->sin_family = AF_INET;
  at->sin_port = htons(atoi(argv[2]));
  inet_pton(AF_INET, argv[1], &at->sin_addr);
  strcpy(low + 64, "foreign");

  long own = call32(SOCKET_32, AF_INET, SOCK_DGRAM, 0, 0, 0, 0);
  int sock = own >= 0 ? (int)own : socket(AF_INET, SOCK_DGRAM, 0);
  long sent = call32(SENDTO_32, sock, (long)(low + 64), 7, 0, (long)at, sizeof *at);
  long connected = call32(CONNECT_32, sock, (long)at, sizeof *at, 0, 0, 0);
  errno = 0;
  long x32 = syscall(CONNECT_X32, sock, at, sizeof *at);
  int x32_errno = x32 < 0 ? errno : 0;

  const char *path = getenv("PROBE_REPORT");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return 4;
  fprintf(file, "{\"socket\": %ld, \"sendto\": %ld, \"connect\": %ld, \"x32\": %d}\n", own < 0 ? own : 0,
          sent, connected, -x32_errno);
  return fclose(file) ? 4 : 0;
}
