"""The one seam between the runner and Linux: every call of the mechanism is a method of `Kernel`.

A test stages a failure by a subclass that raises from one method. Every method raises `OSError` with the
errno of the call. The module imports on any platform; only calling a method needs Linux.
"""

from __future__ import annotations

import ctypes
import os
import platform
import select
import socket
import threading
from ctypes import addressof, c_size_t, c_void_p
from errno import EINVAL, ENOENT, ENOSYS, EPERM, ESRCH
from struct import Struct

from flowproof.run import numbers as n

try:
    import fcntl
    import resource
except ImportError:  # not a Unix: `Kernel` can be named there, and not used
    fcntl = None  # type: ignore[assignment]  # the platform has none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FILTER_FLAGS", "Kernel", "ThreadStatus", "UnixSocket", "WaitKillableError"]

FILTER_FLAGS = n.SECCOMP_FILTER_FLAG_NEW_LISTENER | n.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
"""What every run's filter is installed with: without killable waits a signal repeats what was done."""

_SCRATCH = 4096
_PAIR = Struct("=QQ")
_SIZES = Struct("=HHH")
_DIAG_REQUEST = Struct("=IHHIIBBHIIIII")  # nlmsghdr, unix_diag_req
_NLMSGHDR = Struct("=IHHII")
_DIAG_MESSAGE = Struct("=BBBBIII")
_ATTRIBUTE = Struct("=HH")
_VFS = Struct("=II")


class WaitKillableError(OSError):
    """The kernel refuses SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (Linux < 5.19)."""


class ThreadStatus:
    """What ``/proc/<tid>/status`` says of a thread: its process, signals (bit masks) and identity."""

    __slots__ = ("blocked", "caught", "gids", "groups", "ignored", "shared", "tgid", "thread",
                 "threads", "uids")  # fmt: skip

    def __init__(self, text: str) -> None:
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        self.tgid = int(fields["Tgid"])
        self.threads = int(fields["Threads"])
        self.uids = tuple(map(int, fields["Uid"].split()))
        self.gids = tuple(map(int, fields["Gid"].split()))
        self.groups = tuple(map(int, fields["Groups"].split()))
        self.thread = int(fields["SigPnd"], 16)
        self.shared = int(fields["ShdPnd"], 16)
        self.blocked = int(fields["SigBlk"], 16)
        self.ignored = int(fields["SigIgn"], 16)
        self.caught = int(fields["SigCgt"], 16)


class UnixSocket:
    """A unix socket of a network namespace, as unix_diag lists it.

    *inode* is the socket's (``socket:[N]``), *file* the (device in the kernel's encoding, inode) of the
    path that it is bound to, cut to 32 bits each, and *name* its bytes, an abstract one from its NUL on.
    """

    __slots__ = ("file", "inode", "name", "type")

    def __init__(
        self, inode: int, type_: int, name: bytes | None, file: tuple[int, int] | None
    ) -> None:
        self.inode = inode
        self.type = type_
        self.name = name
        self.file = file


class _Local(threading.local):
    """What each thread has one of."""

    def __init__(self) -> None:
        self.scratch = _Scratch()


class _Scratch:
    """A buffer and two iovecs of one thread, so that a small read allocates nothing."""

    __slots__ = ("data", "length", "length_pointer", "local", "local_pointer", "option",
                 "option_pointer", "pin", "remote", "remote_pin", "remote_pointer", "view")  # fmt: skip

    def __init__(self) -> None:
        self.data = bytearray(_SCRATCH)
        self.view = memoryview(self.data)
        self.pin = (ctypes.c_char * _SCRATCH).from_buffer(self.data)
        self.local = (c_size_t * 2)(addressof(self.pin), _SCRATCH)
        self.remote = bytearray(16)
        self.remote_pin = (ctypes.c_char * 16).from_buffer(self.remote)
        self.local_pointer = c_void_p(addressof(self.local))
        self.remote_pointer = c_void_p(addressof(self.remote_pin))
        self.option = (ctypes.c_int * 1)()
        self.length = (ctypes.c_uint * 1)(4)
        self.option_pointer = c_void_p(addressof(self.option))
        self.length_pointer = c_void_p(addressof(self.length))


_SECLUDING = 2
"""Landlock's first ABI (Linux 5.19) whose domains let files be renamed between folders."""


class Kernel:
    """The calls of the mechanism, one method each. Safe to share between threads."""

    def __init__(self) -> None:
        self._numbers = n.SYSCALLS.get(platform.machine(), n.SYSCALLS["x86_64"])
        self._getfd_number = self._numbers["pidfd_getfd"]
        self._threads = True  # PIDFD_THREAD is known
        if fcntl is not None and platform.system() == "Linux":
            self._load()

    def _load(self) -> None:
        """Fetch the functions of the C library. No argtypes: prepared pointers are a third cheaper."""
        self._c: Any = ctypes.CDLL(None, use_errno=True)
        self._connect = self._c.connect
        self._syscall = self._c.syscall
        self._readv = self._c.process_vm_readv
        self._getsockopt = self._c.getsockopt
        for function in (self._readv, self._c.process_vm_writev, self._c.sendto, self._c.sendmsg):
            function.restype = ctypes.c_ssize_t
        self._syscall.restype = ctypes.c_long
        self._local = _Local()

    @staticmethod
    def _error(call: str) -> OSError:
        code = ctypes.get_errno()
        return OSError(code, f"{call}: {os.strerror(code)}")

    def _prctl(self, option: int, value: int) -> None:
        zero = ctypes.c_ulong(0)
        if self._c.prctl(option, ctypes.c_ulong(value), zero, zero, zero) < 0:
            raise self._error("prctl")

    # --- this process ---

    def set_no_new_privs(self) -> None:
        """Give up gaining privileges by exec, for good: an unprivileged filter needs it."""
        self._prctl(n.PR_SET_NO_NEW_PRIVS, 1)

    def landlock(self) -> int:
        """Return the version of Landlock's ABI, 0 where there is none (landlock_create_ruleset(2))."""
        flags = n.LANDLOCK_CREATE_RULESET_VERSION
        version = self._syscall(self._numbers["landlock_create_ruleset"], None, 0, flags)
        return max(int(version), 0)

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

        From ABI 6 (Linux 6.12) on a domain with a scope alone, which leaves files, mounts and TCP be. Before,
        one about renames that grants them all; it forbids mounts. no_new_privs must be set.
        """
        scoped = self.landlock() >= n.LANDLOCK_ABI_SCOPED
        renames = 0 if scoped else n.LANDLOCK_ACCESS_FS_REFER
        fields = (renames, 0, n.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET) if scoped else (renames,)
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

    def set_dumpable(self, dumpable: bool) -> None:
        """Let others of the same user trace this process and read its memory, or not."""
        self._prctl(n.PR_SET_DUMPABLE, int(dumpable))

    def set_subreaper(self, on: bool = True) -> None:
        """Become the parent of every orphan below this process, or no longer."""
        self._prctl(n.PR_SET_CHILD_SUBREAPER, int(on))

    def close_range(self, first: int, last: int = 0xFFFFFFFF, flags: int = 0) -> None:
        """Close the descriptors *first* to *last*, or mark them CLOSE_RANGE_CLOEXEC."""
        arguments = (ctypes.c_uint(first), ctypes.c_uint(last), flags)
        if self._c.syscall(self._numbers["close_range"], *arguments) < 0:
            raise self._error("close_range")

    def raise_descriptor_limit(self) -> None:
        """Let this process hold as many descriptors as it may."""
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def kill(self, pid: int, number: int) -> None:
        """Send a signal to a process."""
        os.kill(pid, number)

    def tgkill(self, tgid: int, tid: int, number: int) -> None:
        """Send a signal to one thread of a process."""
        if self._c.syscall(self._numbers["tgkill"], tgid, tid, number) < 0:
            raise self._error("tgkill")

    def assume(self, uid: int, gid: int, groups: tuple[int, ...]) -> None:
        """Take on another user's identity, for the calling thread only and for good (needs root)."""
        array = (ctypes.c_uint * max(len(groups), 1))(*groups)
        c, ids = self._c, self._numbers
        user, group = ctypes.c_uint(uid), ctypes.c_uint(gid)
        if (
            c.syscall(ids["setgroups"], c_size_t(len(groups)), array) < 0
            or c.syscall(ids["setresgid"], group, group, group) < 0
            or c.syscall(ids["setresuid"], user, user, user) < 0
        ):
            raise self._error("setresuid")

    # --- the filter ---

    def notification_sizes(self) -> tuple[int, int, int]:
        """Return the kernel's sizes of seccomp_notif, seccomp_notif_resp and seccomp_data."""
        buffer = ctypes.create_string_buffer(_SIZES.size)
        if self._c.syscall(self._numbers["seccomp"], n.SECCOMP_GET_NOTIF_SIZES, 0, buffer) < 0:
            raise self._error("seccomp(GET_NOTIF_SIZES)")
        first, second, third = _SIZES.unpack(buffer.raw)
        return first, second, third

    def install_filter(self, program: bytes, flags: int = FILTER_FLAGS) -> int:
        """Put *program* (8 bytes per sock_filter) on this thread; return its listener (close-on-exec).

        Raises `WaitKillableError` where the kernel knows the flags but for WAIT_KILLABLE_RECV. EBUSY: there
        is a listener already. EACCES: no_new_privs is not set.
        """
        code = ctypes.create_string_buffer(program, len(program))
        fprog = (c_size_t * 2)(len(program) // 8, addressof(code))  # u16 len, padding, pointer
        number = self._numbers["seccomp"]
        listener = self._c.syscall(number, n.SECCOMP_SET_MODE_FILTER, ctypes.c_uint(flags), fprog)
        if listener >= 0:
            return int(listener)
        error = self._error("seccomp(SET_MODE_FILTER)")
        killable = n.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
        if error.errno == EINVAL and flags & killable and not self._knows_flag(killable):
            raise WaitKillableError(EINVAL, "seccomp: WAIT_KILLABLE_RECV is not known")
        raise error

    def _knows_flag(self, flag: int) -> bool:
        """Tell whether the kernel knows a filter flag: a NULL program is then EFAULT, not EINVAL."""
        both = ctypes.c_uint(flag | n.SECCOMP_FILTER_FLAG_NEW_LISTENER)
        number = self._numbers["seccomp"]
        self._c.syscall(number, n.SECCOMP_SET_MODE_FILTER, both, c_void_p(None))
        return ctypes.get_errno() != EINVAL

    # --- the listener ---

    def receive(self, listener: int, buffer: bytearray) -> None:
        """Wait for a notification; *buffer* is struct seccomp_notif, all zero before.

        ENOENT: the caller died meanwhile, or (Linux 6.11 and newer) nobody is left under the filter.
        """
        fcntl.ioctl(listener, n.SECCOMP_IOCTL_NOTIF_RECV, buffer)

    def send(self, listener: int, response: bytearray) -> None:
        """Answer a notification: struct seccomp_notif_resp. ENOENT: the caller is gone."""
        fcntl.ioctl(listener, n.SECCOMP_IOCTL_NOTIF_SEND, response)

    def id_valid(self, listener: int, notification: bytearray) -> None:
        """Raise ENOENT if the caller of a notification (its id, 8 bytes) is gone."""
        fcntl.ioctl(listener, n.SECCOMP_IOCTL_NOTIF_ID_VALID, notification)

    def set_sync_wake_up(self, listener: int) -> None:
        """Let a reply wake the caller on this CPU; EINVAL where it is not known (Linux < 6.6)."""
        fcntl.ioctl(listener, n.SECCOMP_IOCTL_NOTIF_SET_FLAGS, n.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)

    def poll(self, listener: int, milliseconds: int) -> int:
        """Return the poll events of the listener; POLLHUP means that nobody is left under its filter."""
        poller = select.poll()
        poller.register(listener, select.POLLIN)
        found = poller.poll(milliseconds)
        return found[0][1] if found else 0

    def receive_ends(self) -> bool:
        """Tell whether a blocked `receive` returns when the last user of the filter is gone (6.11)."""
        release = platform.release().split(".")
        try:
            return (int(release[0]), int(release[1])) >= (6, 11)
        except (IndexError, ValueError):
            return False

    # --- the calling process ---

    def pidfd_open(self, tid: int) -> int:
        """Return a pidfd of a thread.

        Where PIDFD_THREAD is not known (Linux < 6.9) it is the leader's, once kcmp(2) has said that both
        share their descriptors; EPERM otherwise, since the leader's would be the wrong ones.
        """
        number, call = self._numbers["pidfd_open"], self._c.syscall
        if self._threads:
            found = call(number, tid, n.PIDFD_THREAD)
            if found >= 0:
                return int(found)
            if ctypes.get_errno() != EINVAL:
                raise self._error("pidfd_open")
            self._threads = False
        found = call(number, tid, 0)
        if found >= 0:
            return int(found)
        if ctypes.get_errno() not in (EINVAL, ENOENT):
            raise self._error("pidfd_open")
        leader = self.status(tid).tgid
        if leader == tid:
            raise OSError(ESRCH, "pidfd_open: no such thread")
        zero = ctypes.c_ulong(0)
        if call(self._numbers["kcmp"], tid, leader, n.KCMP_FILES, zero, zero) != 0:
            raise OSError(EPERM, "pidfd_open: a thread with descriptors of its own needs Linux 6.9")
        found = call(number, leader, 0)
        if found < 0:
            raise self._error("pidfd_open")
        return int(found)

    def pidfd_getfd(self, pidfd: int, descriptor: int) -> int:
        """Return a duplicate (close-on-exec) of another process's descriptor. EBADF: it has none."""
        found = self._syscall(self._getfd_number, pidfd, descriptor, 0)
        if found < 0:
            raise self._error("pidfd_getfd")
        return found  # type: ignore[no-any-return]  # a C long

    def read_memory(self, tid: int, address: int, length: int) -> bytes:
        """Return up to *length* bytes of another process; fewer where its mapping ends."""
        own = self._local.scratch
        if length <= _SCRATCH:
            _PAIR.pack_into(own.remote, 0, address, length)
            got = self._readv(tid, own.local_pointer, 1, own.remote_pointer, 1, 0)
            if got < 0:
                raise self._error("process_vm_readv")
            return bytes(own.view[:got])
        buffer = bytearray(length)
        pin = (ctypes.c_char * length).from_buffer(buffer)
        local = (c_size_t * 2)(addressof(pin), length)
        remote = (c_size_t * 2)(address, length)
        got = self._readv(tid, local, 1, remote, 1, 0)
        if got < 0:
            raise self._error("process_vm_readv")
        del pin
        return bytes(memoryview(buffer)[:got])

    def gather_memory(self, tid: int, vectors: list[tuple[int, int]]) -> bytes:
        """Return what up to 1024 ranges (address, length) of another process hold, one after the other.

        Fewer bytes where a range is not mapped to its end; EFAULT where the first is not mapped at all.
        """
        total = sum(length for _address, length in vectors)
        buffer = bytearray(total)
        pin = (ctypes.c_char * total).from_buffer(buffer) if total else None
        if pin is None:
            return b""
        local = (c_size_t * 2)(addressof(pin), total)
        flat = [number for vector in vectors for number in vector]
        remote = (c_size_t * len(flat))(*flat)
        got = self._readv(tid, local, 1, remote, len(vectors), 0)
        if got < 0:
            raise self._error("process_vm_readv")
        del pin
        return bytes(memoryview(buffer)[:got])

    def write_memory(self, tid: int, address: int, data: bytes) -> int:
        """Write into another process; return how many bytes were written."""
        buffer = ctypes.create_string_buffer(data, len(data))
        local = (c_size_t * 2)(addressof(buffer), len(data))
        remote = (c_size_t * 2)(address, len(data))
        got = self._c.process_vm_writev(tid, local, 1, remote, 1, 0)
        if got < 0:
            raise self._error("process_vm_writev")
        return int(got)

    def status(self, tid: int) -> ThreadStatus:
        """Return what /proc says of a thread."""
        with open(f"/proc/{tid}/status", encoding="ascii", errors="replace") as file:
            return ThreadStatus(file.read())

    def executable(self, tid: int) -> str:
        """Return the path of the program that a thread runs."""
        return os.readlink(f"/proc/{tid}/exe")

    def children(self, pid: int) -> tuple[int, ...]:
        """Return the process ids of a process's children, those of each of its threads."""
        found: list[int] = []
        folder = f"/proc/{pid}/task"
        for tid in os.listdir(folder):
            try:
                with open(f"{folder}/{tid}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
            except (FileNotFoundError, ProcessLookupError):
                if not os.path.exists("/proc/thread-self/children"):  # no CONFIG_PROC_CHILDREN
                    return self._children_by_parent(pid)
        return tuple(found)

    @staticmethod
    def _children_by_parent(pid: int) -> tuple[int, ...]:
        """Return the children of a process by looking at every process there is."""
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                    parent = file.read().rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(parent) == pid:
                found.append(int(name))
        return tuple(found)

    def descriptors(self, pid: int) -> dict[str, str]:
        """Return the descriptors of a process: number → what it is, such as ``socket:[4711]``."""
        folder = f"/proc/{pid}/fd"
        found = {}
        for name in os.listdir(folder):
            try:
                found[name] = os.readlink(f"{folder}/{name}")
            except FileNotFoundError:  # closed meanwhile
                continue
        return found

    def descriptor(self, pid: int, name: str) -> str:
        """Return what one descriptor of a process is."""
        return os.readlink(f"/proc/{pid}/fd/{name}")

    def folders(self, tid: int) -> tuple[int, int | None, bytes]:
        """Return where a thread's paths begin: O_PATH descriptors of its folder and of its root.

        The root is None where it is this process's own; else the third is the folder as text below it.
        """
        folder = os.open(f"/proc/{tid}/cwd", n.O_PATH | n.O_CLOEXEC)
        try:
            same = os.readlink(f"/proc/{tid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
            if same and os.path.samestat(os.stat(f"/proc/{tid}/root"), os.stat("/")):
                return folder, None, b""
            above = os.fsencode(os.readlink(f"/proc/{tid}/root")).rstrip(b"/")
            text = os.fsencode(os.readlink(f"/proc/{tid}/cwd"))
            root = os.open(f"/proc/{tid}/root", n.O_PATH | n.O_CLOEXEC)
        except OSError:
            os.close(folder)
            raise
        return folder, root, text.removeprefix(above)

    def same_network(self, tid: int) -> bool:
        """Tell whether a thread is in this process's network namespace."""
        return os.readlink(f"/proc/{tid}/ns/net") == os.readlink("/proc/self/ns/net")

    def unix_names(self, tid: int) -> str:
        """Return ``/proc/<tid>/net/unix``, the unix sockets of a thread's network namespace."""
        with open(f"/proc/{tid}/net/unix", encoding="utf-8", errors="backslashreplace") as file:
            return file.read()

    def open_path(
        self, path: str | bytes, folder: int | None = None, root: int | None = None
    ) -> int:
        """Return an O_PATH descriptor of *path*, symbolic links followed.

        A relative path begins at *folder*. With *root*, that is the root of every absolute path and link.
        """
        if root is None:
            return os.open(path, n.O_PATH | n.O_CLOEXEC, dir_fd=folder)
        how = (ctypes.c_uint64 * 3)(n.O_PATH | n.O_CLOEXEC, 0, n.RESOLVE_IN_ROOT)
        text = os.fsencode(path)
        got = self._c.syscall(self._numbers["openat2"], root, text, how, c_size_t(24))
        if got < 0:
            raise self._error("openat2")
        return int(got)

    # --- sockets, on raw addresses ---

    def connect(self, descriptor: int, address: bytes) -> None:
        """Connect a socket to a raw address."""
        if self._connect(descriptor, address, len(address)) < 0:
            raise self._error("connect")

    def listen(self, descriptor: int, backlog: int) -> None:
        """Let a socket take connections."""
        if self._c.listen(descriptor, backlog) < 0:
            raise self._error("listen")

    def sendto(self, descriptor: int, data: bytes, flags: int, address: bytes) -> int:
        """Send to a raw address; return how many bytes were taken."""
        got = self._c.sendto(
            descriptor, data, c_size_t(len(data)), flags, address or None, len(address)
        )
        if got < 0:
            raise self._error("sendto")
        return int(got)

    def sendmsg(
        self, descriptor: int, address: bytes, data: bytes, control: bytes, flags: int
    ) -> int:
        """Send one message, return how many bytes were taken; an empty *address* or *control* is none."""
        name = ctypes.create_string_buffer(address, len(address)) if address else None
        extra = ctypes.create_string_buffer(control, len(control)) if control else None
        payload = ctypes.c_char_p(data)
        start = ctypes.cast(payload, c_void_p).value or 0
        vector = (c_size_t * 2)(start, len(data))
        # struct msghdr: name, u32 namelen (and padding), iov, iovlen, control, controllen, int flags
        header = (c_size_t * 7)(
            addressof(name) if name else 0,
            len(address),
            addressof(vector),
            1,
            addressof(extra) if extra else 0,
            len(control),
            0,
        )
        got = self._c.sendmsg(descriptor, header, flags)
        if got < 0:
            raise self._error("sendmsg")
        return int(got)

    def getsockname(self, descriptor: int) -> bytes:
        """Return the raw address that a socket is bound to."""
        buffer = ctypes.create_string_buffer(n.SOCKADDR_STORAGE)
        length = ctypes.c_uint(n.SOCKADDR_STORAGE)
        if self._c.getsockname(descriptor, buffer, ctypes.byref(length)) < 0:
            raise self._error("getsockname")
        return buffer.raw[: min(length.value, n.SOCKADDR_STORAGE)]

    def getsockopt(self, descriptor: int, level: int, option: int) -> int:
        """Return an option of a socket that is an int. ENOTSOCK: it is no socket."""
        own = self._local.scratch
        if self._getsockopt(descriptor, level, option, own.option_pointer, own.length_pointer) < 0:
            raise self._error("getsockopt")
        return own.option[0]

    def send_timeout(self, descriptor: int) -> bool:
        """Tell whether a socket has a send timeout: an interrupted call is then never restarted."""
        with socket.socket(fileno=os.dup(descriptor)) as own:
            return any(own.getsockopt(n.SOL_SOCKET, n.SO_SNDTIMEO, 16))

    def nonblocking(self, descriptor: int) -> bool:
        """Tell whether the open file of a descriptor has O_NONBLOCK."""
        return bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_NONBLOCK)

    def shutdown(self, descriptor: int, how: int) -> None:
        """Shut a socket down, as the constants of `socket` say how."""
        if self._c.shutdown(descriptor, how) < 0:
            raise self._error("shutdown")

    def close(self, descriptor: int) -> None:
        """Close a descriptor of this process."""
        os.close(descriptor)

    # --- unix sockets ---

    def unix_bound(self, path: bytes) -> bool:
        """Tell whether a socket is bound to *path* (a socket file), in whichever network namespace.

        A datagram socket of our own is pointed there: the kernel tells "nobody" (ECONNREFUSED) from "a
        socket of another type" (EPROTOTYPE), and pointing it at a datagram socket sends nothing.
        """
        with socket.socket(n.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as own:
            try:
                own.connect(path)
            except ConnectionRefusedError:
                return False
            except OSError:
                return True
        return True

    def unix_sockets(self) -> list[UnixSocket]:
        """Return the unix sockets of this process's network namespace (sock_diag(7)).

        ENOENT: the kernel has no unix_diag.
        """
        request = _DIAG_REQUEST.pack(
            _DIAG_REQUEST.size, n.SOCK_DIAG_BY_FAMILY, n.NLM_F_REQUEST | n.NLM_F_DUMP, 1, 0,
            n.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, n.UDIAG_SHOW_NAME | n.UDIAG_SHOW_VFS, 0, 0,
        )  # fmt: skip
        found: list[UnixSocket] = []
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        with socket.socket(n.AF_NETLINK, kind, n.NETLINK_SOCK_DIAG) as own:
            own.sendto(request, (0, 0))
            while not _parse_diag(own.recv(1 << 16), found):
                pass
        return found


def _parse_diag(data: bytes, found: list[UnixSocket]) -> bool:
    """Add the sockets of one datagram of a dump to *found*; return whether it was the last."""
    at = 0
    while at + _NLMSGHDR.size <= len(data):
        length, kind, _flags, _sequence, _port = _NLMSGHDR.unpack_from(data, at)
        if kind == n.NLMSG_DONE:
            return True
        if kind == n.NLMSG_ERROR:
            code = -int.from_bytes(data[at + 16 : at + 20], "little", signed=True)
            raise OSError(code or ENOSYS, f"unix_diag: {os.strerror(code)}")
        found.append(_parse_socket(data[at + 16 : at + length]))
        at += (length + 3) & ~3
    return False


def _parse_socket(message: bytes) -> UnixSocket:
    """Return the socket of one struct unix_diag_msg and its attributes."""
    _family, type_, _state, _pad, inode, _cookie0, _cookie1 = _DIAG_MESSAGE.unpack_from(message)
    name: bytes | None = None
    file: tuple[int, int] | None = None
    at = _DIAG_MESSAGE.size
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        value = message[at + 4 : at + length]
        if kind == n.UNIX_DIAG_NAME:
            name = value
        elif kind == n.UNIX_DIAG_VFS:
            number, device = _VFS.unpack_from(value)
            file = (device, number)
        at += max((length + 3) & ~3, 4)
    return UnixSocket(inode, type_, name, file)
