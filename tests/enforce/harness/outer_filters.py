"""Filters of the world around a run: each refuses calls of the mechanism, as a sandbox or a module would.

System call numbers: asm/unistd_64.h (x86_64) and asm-generic/unistd.h (aarch64). Which calls Yama's scopes
refuse: Documentation/admin-guide/LSM/Yama.rst and the callers of ptrace_may_access(PTRACE_MODE_ATTACH) in
Linux 6.1. What Docker's profile leaves out without a capability: profiles/seccomp/default.json of moby/moby.
"""

from __future__ import annotations

import os

__all__ = ["DOCKER", "DOCKER_OLD", "DOCKER_WITH_PTRACE", "MACHINE", "NUMBERS", "YAMA", "calls"]

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
