"""Unix sockets: who holds the bound one, a process of the run (inside) or another (outside)."""

from __future__ import annotations

import os
import stat
import threading
from errno import ECONNREFUSED, errorcode
from struct import Struct

from flowproof.artifact.model import Decision
from flowproof.record.codes import Code
from flowproof.run.caller import AnswerError, FaultError
from flowproof.run.calls.target import Target
from flowproof.run.numbers import AF_UNIX, SO_TYPE
from flowproof.run.tree import UnlistedSocketsError, UnreadableProcessError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.run.caller import Caller, Operation
    from flowproof.run.kernel import Kernel
    from flowproof.run.sockaddr import Unix

    Identity = tuple[int, int, tuple[int, ...]]

__all__ = ["acting_as", "identity_of", "judge"]

_NAME_CACHE = (b"/run/nscd/socket", b"/var/run/nscd/socket")
"""glibc asks the name-service cache daemon at each lookup; refused, and no attempt of the program."""
_FAMILY = Struct("=H").pack(AF_UNIX)
_INSIDE = Decision(False, None, (), ())
"""A socket of the run that no rule names: let through, by no rule."""


def judge(caller: Caller, address: Unix, raw: bytes, duplicate: int) -> Target:
    """Return what becomes of a connect or send to a unix address."""
    if address.path is not None:
        if address.path in _NAME_CACHE:
            return Target(raw, ECONNREFUSED)
        return _path(caller, address.path)
    if address.name is not None:
        return _abstract(caller, address.name, raw, duplicate)
    return Target(raw)  # unnamed: EINVAL, whatever the kind of socket


def acting_as(
    kernel: Kernel,
    identity: Identity | None,
    act: Callable[[], int],
    operation: Operation | None = None,
) -> int:
    """Return act(), done with the caller's user and groups where those are not the supervisor's.

    *operation* is told the thread that does it, so that the watchdog interrupts the right one.
    """
    if identity is None:
        return act()
    outcome: list[int | BaseException] = []
    own = operation.thread if operation is not None else 0

    def work() -> None:  # its identity is the thread's own, and ends with it
        try:
            if operation is not None:
                operation.thread = threading.get_native_id()
            _assume(kernel, identity)
            outcome.append(act())
        except BaseException as error:  # noqa: BLE001  raised again by the thread that waits
            outcome.append(error)

    thread = threading.Thread(target=work, name="identity", daemon=True)
    thread.start()
    thread.join()
    if operation is not None:
        operation.thread = own
    (found,) = outcome
    if isinstance(found, BaseException):
        raise found
    return found


def _assume(kernel: Kernel, identity: Identity) -> None:
    try:
        kernel.assume(*identity)
    except OSError as error:
        name = errorcode.get(error.errno or 0, str(error.errno))
        raise FaultError(Code.IDENTITY, f"setresuid: {name}") from error


def identity_of(caller: Caller) -> Identity | None:
    """Return the caller's file-system user and groups, or None where they are the supervisor's.

    Only root may act as another: a supervisor that is not root contains nobody else's processes.
    """
    if not caller.privileged:
        return None
    try:
        status = caller.kernel.status(caller.tid)
    except (OSError, KeyError, ValueError) as error:
        caller.check()
        raise FaultError(Code.CHILD_PROCESS, "/proc/<tid>/status cannot be read") from error
    if (status.uids[3], status.gids[3]) == (os.geteuid(), os.getegid()):
        return None
    return status.uids[3], status.gids[3], status.groups


def _path(caller: Caller, path: bytes) -> Target:
    kernel = caller.kernel
    identity = identity_of(caller)
    descriptor = _open(caller, path, identity)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISSOCK(status.st_mode):
            raise AnswerError(ECONNREFUSED)
        link = f"/proc/self/fd/{descriptor}"
        text = os.readlink(link)
        act = _FAMILY + link.encode() + b"\0"
        row = _row(caller, status)
        plain = caller.decisions.special("unix")
        if row is None and not (plain.refused or plain.asserting or plain.observing):
            decision, note = plain, None  # inside and outside come to the same
        elif not kernel.unix_bound(link.encode()):
            raise AnswerError(ECONNREFUSED)  # nobody listens: no attempt
        else:
            device = os.major(status.st_dev) << 20 | os.minor(
                status.st_dev
            )  # as the kernel packs it
            file = (device, status.st_ino & 0xFFFFFFFF)
            inside = _asked(caller, lambda: caller.tree.holds_file(file))
            decision, note = _decided(row, plain, inside=inside)
    except BaseException:
        kernel.close(descriptor)
        raise
    refusal = ECONNREFUSED if decision.refused else 0
    shown = os.fsencode(text).decode("utf-8", "backslashreplace")
    return Target(
        act, refusal, decision, "unix", shown, note=note, held=(descriptor,), identity=identity
    )


def _abstract(caller: Caller, name: bytes, raw: bytes, duplicate: int) -> Target:
    """Judge an abstract name: one of the supervisor's namespace first, then one of the caller's own."""
    kind = caller.option(duplicate, SO_TYPE)
    shown = "@" + name.decode("utf-8", "backslashreplace")
    row = next(((out, inn) for path, out, inn in caller.decisions.unix if path == shown), None)
    plain = caller.decisions.special("unix")
    if row is None and not (plain.refused or plain.asserting or plain.observing):
        return Target(raw, 0, plain, "unix", shown)

    def inside() -> bool:
        here = [s for s in caller.tree.sockets() if s.name == b"\0" + name]
        if any(s.type == kind for s in here):
            return all(caller.tree.holds(s.inode) for s in here if s.type == kind)
        if caller.kernel.same_network(caller.tid):
            raise AnswerError(ECONNREFUSED)
        there = _inodes(caller.kernel.unix_names(caller.tid), name)
        if not there:
            raise AnswerError(ECONNREFUSED)
        return all(caller.tree.holds(inode) for inode in there)

    decision, note = _decided(row, plain, inside=_asked(caller, inside))
    refusal = ECONNREFUSED if decision.refused else 0
    return Target(raw, refusal, decision, "unix", shown, note=note)


def _inodes(listing: str, name: bytes) -> list[int]:
    """Return the sockets bound to an abstract name in a ``/proc/net/unix``, where NUL is shown as @."""
    shown = "@" + name.replace(b"\0", b"@").decode("utf-8", "backslashreplace")
    rows = (line.split(" ", 7) for line in listing.splitlines()[1:])
    found = []
    for row in rows:
        inode, _space, path = row[-1].strip().partition(" ")
        if path == shown:
            found.append(int(inode))
    return found


def _asked(caller: Caller, ask: Callable[[], bool]) -> bool:
    """Return the answer to "is it inside", or the fault that leaves it open."""
    try:
        return ask()
    except (UnreadableProcessError, UnlistedSocketsError) as error:
        caller.check()
        raise FaultError(error.code, str(error)) from error
    except OSError as error:
        raise caller.fault(Code.CHILD_PROCESS, "/proc/<tid>/net", error) from error


def _decided(
    row: tuple[Decision, Decision] | None, plain: Decision, *, inside: bool
) -> tuple[Decision, str | None]:
    if row is not None:
        return (row[1], "inside") if inside else (row[0], None)
    return (_INSIDE, "inside") if inside else (plain, None)


def _row(caller: Caller, status: os.stat_result) -> tuple[Decision, Decision] | None:
    """Return the decisions of the rule paths that are this very file; a refusal before what lets through.

    By identity, not by text: in a mount namespace of its own a program can give a file any path.
    """
    found = []
    for path, outside, inside in caller.decisions.unix:
        if path.startswith("@"):
            continue
        try:
            same = os.path.samestat(os.stat(path), status)
        except OSError:
            continue
        if same:
            found.append((outside, inside))
    return min(found, key=lambda pair: not pair[0].refused, default=None)


def _open(caller: Caller, path: bytes, identity: Identity | None) -> int:
    """Return an O_PATH descriptor of what the caller's path leads to; a bare errno where it leads nowhere."""
    kernel = caller.kernel
    try:
        folder, root, prefix = kernel.folders(caller.tid)
    except OSError as error:
        raise caller.fault(Code.CHILD_PROCESS, "/proc/<tid>/cwd", error) from error
    if root is not None and not path.startswith(b"/"):
        path = prefix + b"/" + path
    for own, theirs in (
        (b"/proc/self/", b"/proc/%d/" % caller.who()[0]),
        (b"/proc/thread-self/", b"/proc/%d/" % caller.tid),
    ):
        if path.startswith(own):
            path = theirs + path.removeprefix(own)
    try:
        return acting_as(kernel, identity, lambda: kernel.open_path(path, folder, root))
    except OSError as error:
        if errorcode.get(error.errno or 0) in ("EMFILE", "ENFILE", "ENOMEM", "EPERM", "ENOSYS"):
            raise caller.fault(Code.CHILD_PROCESS, "open", error) from error
        raise AnswerError(error.errno or ECONNREFUSED) from error
    finally:
        kernel.close(folder)
        if root is not None:
            kernel.close(root)
