"""What keeps a command off the processes outside its run: Landlock's domains and Yama's scope."""

from __future__ import annotations

import ctypes
import os
from errno import ENOSYS, EOPNOTSUPP
from struct import Struct

from flowproof.run import numbers as n
from flowproof.run.kernel.library import Library

__all__ = ["SeclusionCalls"]

_SECLUDING = 2
"""Landlock's first ABI (Linux 5.19) whose domains let files be renamed between folders."""


class SeclusionCalls(Library):
    """The calls about what the processes of a run can trace."""

    def landlock(self) -> int:
        """Return the version of Landlock's ABI, 0 where there is none (landlock_create_ruleset(2)).

        Raises where the call is refused: ENOSYS is a kernel without it, EOPNOTSUPP one that left it out.
        """
        flags = n.LANDLOCK_CREATE_RULESET_VERSION
        version = int(self._syscall(self._numbers["landlock_create_ruleset"], None, 0, flags))
        if version < 0 and ctypes.get_errno() not in (ENOSYS, EOPNOTSUPP):
            raise self._error("landlock_create_ruleset")
        return max(version, 0)

    def ptrace_scope(self) -> int:
        """Return Yama's ptrace_scope, 0 where there is no Yama."""
        try:
            with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0

    def seclusion(self) -> str | None:
        """Return what keeps a command off the processes outside: Landlock, Yama, or None: nothing.

        Tracing is what reading a process's memory and taking its descriptors (pidfd_getfd) come to. Yama's
        scope binds no root.
        """
        if self.landlock() >= _SECLUDING:
            return "Landlock"
        return "Yama" if self.ptrace_scope() > 0 and os.geteuid() != 0 else None

    def shut_in(self) -> None:
        """Put this process and its descendants into a Landlock domain: none can trace a process outside.

        From ABI 6 (Linux 6.12) on the domain has one scope and nothing else: signals stay inside; files,
        mounts, TCP and abstract unix sockets are left be. Before, it is about renames and grants them all; it
        keeps no signal in and forbids mounts. no_new_privs must be set.
        """
        scoped = self.landlock() >= n.LANDLOCK_ABI_SCOPED
        renames = 0 if scoped else n.LANDLOCK_ACCESS_FS_REFER
        fields = (renames, 0, n.LANDLOCK_SCOPE_SIGNAL) if scoped else (renames,)
        attributes = Struct(f"={len(fields)}Q").pack(*fields)
        code = ctypes.create_string_buffer(attributes, len(attributes))
        ruleset = self._syscall(self._numbers["landlock_create_ruleset"], code, len(attributes), 0)
        if ruleset < 0:
            raise self._error("landlock_create_ruleset")
        try:
            if renames:
                self._grant_below_root(ruleset, renames)
            if self._syscall(self._numbers["landlock_restrict_self"], ruleset, 0) < 0:
                raise self._error("landlock_restrict_self")
        finally:
            self.close(ruleset)

    def trace(self, pid: int) -> None:
        """Trace a process without stopping it; it is let go when this one ends (ptrace(2))."""
        zero = ctypes.c_ulong(0)
        if self._syscall(self._numbers["ptrace"], n.PTRACE_SEIZE, pid, zero, zero) < 0:
            raise self._error("ptrace")

    def _grant_below_root(self, ruleset: int, access: int) -> None:
        root = os.open("/", os.O_PATH | os.O_CLOEXEC)
        try:
            beneath = Struct("=Qi").pack(access, root)  # struct landlock_path_beneath_attr, packed
            code = ctypes.create_string_buffer(beneath, len(beneath))
            rule = n.LANDLOCK_RULE_PATH_BENEATH
            if self._syscall(self._numbers["landlock_add_rule"], ruleset, rule, code, 0) < 0:
                raise self._error("landlock_add_rule")
        finally:
            os.close(root)
