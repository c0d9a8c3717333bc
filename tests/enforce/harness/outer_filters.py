"""Filters of the world around a run: each refuses calls of the mechanism, as a sandbox or a module would.

System call numbers: asm/unistd_64.h (x86_64) and asm-generic/unistd.h (aarch64). Which calls Yama's scopes
refuse: Documentation/admin-guide/LSM/Yama.rst and the callers of ptrace_may_access(PTRACE_MODE_ATTACH) in
Linux 6.1. What Docker's profile leaves out without a capability: profiles/seccomp/default.json of moby/moby.
"""

from __future__ import annotations

import os

from flowproof.record.codes import Code

__all__ = [
    "DOCKER",
    "DOCKER_OLD",
    "DOCKER_WITH_PTRACE",
    "MACHINE",
    "MECHANISM",
    "NUMBERS",
    "YAMA",
    "calls",
]

MACHINE = os.uname().machine
_BOTH = {
    "pidfd_open": 434,
    "clone3": 435,
    "close_range": 436,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}
NUMBERS: dict[str, int] = {
    "x86_64": {
        "acct": 163,
        "bpf": 321,
        "clone": 56,
        "connect": 42,
        "fcntl": 72,
        "getsockopt": 55,
        "ioctl": 16,
        "kcmp": 312,
        "kill": 62,
        "listen": 50,
        "mount": 165,
        "perf_event_open": 298,
        "prctl": 157,
        "prlimit64": 302,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "ptrace": 101,
        "seccomp": 317,
        "setns": 308,
        "setresuid": 117,
        "socket": 41,
        "tgkill": 234,
        "unshare": 272,
        **_BOTH,
    },
    "aarch64": {
        "acct": 89,
        "bpf": 280,
        "clone": 220,
        "connect": 203,
        "fcntl": 25,
        "getsockopt": 209,
        "ioctl": 29,
        "kcmp": 272,
        "kill": 129,
        "listen": 201,
        "mount": 40,
        "perf_event_open": 241,
        "prctl": 167,
        "prlimit64": 261,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "ptrace": 117,
        "seccomp": 277,
        "setns": 268,
        "setresuid": 147,
        "socket": 198,
        "tgkill": 131,
        "unshare": 97,
        **_BOTH,
    },
}[MACHINE]

ENOSYS = 38


def calls(*names: str) -> str:
    """Return the words of `outer.py` for calls by name: ``prctl:0:4``, ``clone3=38``."""
    words = []
    for name in names:
        call = name.partition(":")[0].partition("=")[0]
        words.append(str(NUMBERS[call]) + name[len(call) :])
    return ",".join(words)


YAMA = calls("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd")
"""Scope 2 for whoever lacks CAP_SYS_PTRACE, scope 3 for everybody: no attaching."""

_DOCKER_ADMIN = ("bpf", "mount", "perf_event_open", "setns", "unshare", f"clone3={ENOSYS}")
DOCKER = calls("kcmp", "pidfd_getfd", "process_madvise", *_DOCKER_ADMIN)
"""The default profile of a container without CAP_SYS_PTRACE and CAP_SYS_ADMIN, on Linux 4.8 or newer."""
DOCKER_OLD = calls(
    *("kcmp", "pidfd_getfd", "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace"),
    *_DOCKER_ADMIN,
)
"""The same of profiles that let nobody trace without the capability, whatever the kernel."""
DOCKER_WITH_PTRACE = calls(*_DOCKER_ADMIN)
"""The default profile with CAP_SYS_PTRACE added, as the README says."""

MECHANISM: dict[str, tuple[str, Code]] = {
    "seccomp": (calls("seccomp"), Code.NOTIFICATION_SIZES),
    "seccomp GET_NOTIF_SIZES": (calls("seccomp:0:3"), Code.NOTIFICATION_SIZES),
    "seccomp SET_MODE_FILTER": (calls("seccomp:0:1"), Code.FILTER_INSTALL),
    "prctl SET_NO_NEW_PRIVS": (calls("prctl:0:38"), Code.NO_NEW_PRIVS),
    "prctl SET_DUMPABLE": (calls("prctl:0:4"), Code.UNDUMPABLE),
    "prctl SET_CHILD_SUBREAPER": (calls("prctl:0:36"), Code.SUBREAPER),
    "landlock_create_ruleset": (calls("landlock_create_ruleset"), Code.DOMAIN),
    "landlock_restrict_self": (calls("landlock_restrict_self"), Code.DOMAIN),
    "ioctl NOTIF_RECV": (calls("ioctl:1:0xC0502100"), Code.LISTENER_RECEIVE),
    "ioctl NOTIF_SEND": (calls("ioctl:1:0xC0182101"), Code.LISTENER_SEND),
    "ioctl NOTIF_ID_VALID": (calls("ioctl:1:0x40082102"), Code.LISTENER_VALID),
    "pidfd_open": (calls("pidfd_open"), Code.CHILD_HANDLE),
    "pidfd_getfd": (calls("pidfd_getfd"), Code.CHILD_DESCRIPTOR),
    "process_vm_readv": (calls("process_vm_readv"), Code.CHILD_MEMORY),
    "close_range": (calls("close_range"), Code.DESCRIPTORS),
    "kill": (calls("kill"), Code.ENDING),
    "clone": (calls("clone", "clone3"), Code.THREADS),
    "connect": (calls("connect"), Code.PERFORM),
    "Yama's scope 2 or 3": (YAMA, Code.CHILD_DESCRIPTOR),
    "Docker's profile": (DOCKER, Code.CHILD_DESCRIPTOR),
    "Docker's older profile": (DOCKER_OLD, Code.CHILD_DESCRIPTOR),
}
"""What an outer filter refuses → the filter, and the code that the self-test has for it."""
