"""Linux's numbers, named as in the headers; those that differ by architecture are in `SYSCALLS`.

Sources: linux/seccomp.h, linux/landlock.h, linux/filter.h, linux/prctl.h, linux/ptrace.h, linux/pidfd.h,
linux/kcmp.h, linux/close_range.h, linux/sock_diag.h, linux/unix_diag.h, linux/netlink.h, linux/audit.h,
linux/socket.h, linux/in.h, linux/in6.h, linux/udp.h, linux/tls.h; syscall numbers: asm/unistd_64.h
(x86_64) and asm-generic/unistd.h (aarch64), of Linux 6.1 unless a later version is named.
"""

from __future__ import annotations

# prctl(2)
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

# landlock(7): linux/landlock.h
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1
LANDLOCK_ACCESS_FS_REFER = 1 << 13  # ABI 2, Linux 5.19
LANDLOCK_ABI_SCOPED = 6
LANDLOCK_SCOPE_SIGNAL = 1 << 1  # ABI 6, Linux 6.12

# seccomp(2)
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_GET_NOTIF_SIZES = 3
SECCOMP_FILTER_FLAG_NEW_LISTENER = 1 << 3
SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 1 << 5  # Linux 5.19
SECCOMP_USER_NOTIF_FLAG_CONTINUE = 1  # Linux 5.5
SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP = 1  # Linux 6.6
SECCOMP_RET_USER_NOTIF = 0x7FC00000
SECCOMP_RET_ALLOW = 0x7FFF0000
SECCOMP_RET_ERRNO = 0x00050000

# ioctls of the listener: _IOWR('!', 0, struct seccomp_notif) and so on, for the sizes 80 and 24
SECCOMP_IOCTL_NOTIF_RECV = 0xC0502100
SECCOMP_IOCTL_NOTIF_SEND = 0xC0182101
SECCOMP_IOCTL_NOTIF_ID_VALID = 0x40082102
SECCOMP_IOCTL_NOTIF_SET_FLAGS = 0x40082104  # Linux 6.6; the flags are passed by value
NOTIF_SIZES = (80, 24, 64)
"""sizeof of struct seccomp_notif, seccomp_notif_resp and seccomp_data, which `kernel` is written for."""

# ptrace(2), linux/ptrace.h
PTRACE_SEIZE = 0x4206

# pidfd_open(2), kcmp(2), close_range(2)
PIDFD_THREAD = 0x80  # O_EXCL; Linux 6.9
KCMP_FILES = 2
CLOSE_RANGE_CLOEXEC = 4

# linux/filter.h: the operations that the self-test's program is made of
BPF_LD_W_ABS = 0x20
BPF_JMP_JEQ_K = 0x15
BPF_RET_K = 0x06

# the audit architectures of struct seccomp_data
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_SYSCALL_BIT = 0x40000000

SYSCALLS: dict[str, dict[str, int]] = {
    "x86_64": {
        "connect": 42,
        "ptrace": 101,
        "setgroups": 116,
        "setresgid": 119,
        "setresuid": 117,
        "tgkill": 234,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "kcmp": 312,
        "seccomp": 317,
        "pidfd_open": 434,
        "close_range": 436,
        "openat2": 437,
        "pidfd_getfd": 438,
        "landlock_create_ruleset": 444,
        "landlock_add_rule": 445,
        "landlock_restrict_self": 446,
    },
    "aarch64": {
        "connect": 203,
        "ptrace": 117,
        "setresuid": 147,
        "setresgid": 149,
        "setgroups": 159,
        "tgkill": 131,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "kcmp": 272,
        "seccomp": 277,
        "pidfd_open": 434,
        "close_range": 436,
        "openat2": 437,
        "pidfd_getfd": 438,
        "landlock_create_ruleset": 444,
        "landlock_add_rule": 445,
        "landlock_restrict_self": 446,
    },
}

# openat2(2), linux/openat2.h, and open(2) flags of the same value on both architectures
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_IN_ROOT = 0x10
OPEN_HOW = 24  # sizeof(struct open_how): flags, mode, resolve; 64 bits each
O_ACCMODE = 0o3
O_CREAT = 0o100
O_EXCL = 0o200
O_TRUNC = 0o1000
O_PATH = 0o10000000
O_CLOEXEC = 0o2000000
O_NOFOLLOW = {"x86_64": 0o400000, "aarch64": 0o100000}  # asm/fcntl.h of each

# files: linux/fcntl.h, linux/limits.h, linux/fs.h
AT_FDCWD = -100
PATH_MAX = 4096
PROC_SUPER_MAGIC = 0x9FA0  # linux/magic.h
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2

# errno that only the kernel uses: restart the call once the handler of a signal has run
ERESTARTSYS = 512

# address families, linux/socket.h
AF_UNSPEC = 0
AF_UNIX = 1
AF_INET = 2
AF_INET6 = 10
AF_NETLINK = 16
AF_PACKET = 17
AF_BLUETOOTH = 31
AF_VSOCK = 40
AF_XDP = 44
SOCKADDR_STORAGE = 128  # sizeof(struct sockaddr_storage), the longest address that the kernel reads
SOCKADDR_UN = 110  # sizeof(struct sockaddr_un)

# socket types and protocols, linux/net.h and linux/in.h
SOCK_STREAM = 1
SOCK_DGRAM = 2
SOCK_RAW = 3
SOCK_SEQPACKET = 5
SOCK_DCCP = 6
SOCK_PACKET = 10
SOCK_TYPE_MASK = 0xF
IPPROTO_IP = 0
IPPROTO_TCP = 6
IPPROTO_UDP = 17
IPPROTO_DCCP = 33
IPPROTO_IPV6 = 41
IPPROTO_SCTP = 132
IPPROTO_MPTCP = 262
NETLINK_ROUTE = 0
NETLINK_SOCK_DIAG = 4

# socket options, asm-generic/socket.h
SOL_SOCKET = 1
SO_TYPE = 3
SO_SNDTIMEO = 21
SO_PROTOCOL = 38
SO_DOMAIN = 39

# send flags, linux/socket.h
MSG_DONTWAIT = 0x40
MSG_NOSIGNAL = 0x4000
MSG_ZEROCOPY = 0x4000000
MSG_FASTOPEN = 0x20000000
UIO_MAXIOV = 1024  # linux/uio.h: the most iovecs of a message, and messages of a sendmmsg

# control data, linux/socket.h, linux/in.h, linux/in6.h, linux/udp.h, linux/tls.h
SCM_RIGHTS = 1
SCM_CREDENTIALS = 2
SCM_MAX_FD = 253
SO_TIMESTAMPING = 37
SCM_TXTIME = 61
IP_TOS = 1
IP_TTL = 2
IP_PKTINFO = 8
IP_FREEBIND = 15  # linux/in.h
IPV6_FLOWINFO = 11
IPV6_PKTINFO = 50
IPV6_HOPLIMIT = 52
IPV6_DONTFRAG = 62
IPV6_TCLASS = 67
IPV6_FREEBIND = 78
UDP_SEGMENT = 103
SOL_TLS = 282
TLS_SET_RECORD_TYPE = 1

# netlink and unix_diag, linux/netlink.h, linux/sock_diag.h, linux/unix_diag.h
NLM_F_REQUEST = 1
NLM_F_DUMP = 0x300
NLMSG_ERROR = 2
NLMSG_DONE = 3
SOCK_DIAG_BY_FAMILY = 20
UDIAG_SHOW_NAME = 1
UDIAG_SHOW_VFS = 2
UNIX_DIAG_NAME = 0
UNIX_DIAG_VFS = 1
