"""Each call of the seam, refused once its run has begun: a fault with its code, and never a pass.

The calls of the start-up are refused in test_recorder.py; `test_each_call_of_the_seam_is_staged` holds the
whole list together.
"""

from __future__ import annotations

import os
from errno import EACCES, EPERM
from pathlib import Path

import pytest
from runnable import never, python

from flowproof.exit_codes import ExitCode
from flowproof.record.codes import Code
from flowproof.record.model import Verdict
from flowproof.run.kernel import Kernel
from flowproof.run.recorder import Outcome, run

pytestmark = pytest.mark.enforce

UDP = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
FORKED = "import os\nif os.fork(): os.wait()\nelse:\n    " + UDP + "s.connect_ex(('127.0.0.1', 9))"
"""In a process whose handle is not known from the canary."""
PAIR = (
    "import socket; a, b = socket.socketpair(); a.setblocking(False); a.sendmsg([bytes(1 << 22)])"
)
OWN = (
    "import os, socket; path = os.path.join(os.environ['HERE'], 'own.sock');"
    "s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen(1);"
    "c = socket.socket(socket.AF_UNIX); c.connect_ex(path)"
)
ABSTRACT = (
    "import socket; c = socket.socket(socket.AF_UNIX); c.connect_ex('\\0nobody-is-called-this')"
)
SENDMMSG = (
    UDP
    + """
import ctypes
s.bind(("127.0.0.1", 0)); port = s.getsockname()[1].to_bytes(2, "big")
name = ctypes.create_string_buffer(b"\\x02\\0" + port + b"\\x7f\\0\\0\\x01" + bytes(8), 16)
data = ctypes.create_string_buffer(b"x", 1)
part = (ctypes.c_size_t * 2)(ctypes.addressof(data), 1)
header = (ctypes.c_size_t * 8)(ctypes.addressof(name), 16, ctypes.addressof(part), 1, 0, 0, 0, 0)
ctypes.CDLL(None).sendmmsg(s.fileno(), header, 1, 0)
"""
)

REFUSED = [
    ("read_memory", EPERM, UDP + "s.connect_ex(('127.0.0.1', 9))", Code.CHILD_MEMORY),
    (
        "gather_memory",
        EPERM,
        UDP + "s.connect(('127.0.0.1', 9)); s.sendmsg([b'x'])",
        Code.CHILD_MEMORY,
    ),
    ("pidfd_open", EPERM, FORKED, Code.CHILD_HANDLE),
    ("pidfd_getfd", EPERM, UDP + "s.connect_ex(('127.0.0.1', 9))", Code.CHILD_DESCRIPTOR),
    ("id_valid", EPERM, UDP + "s.connect_ex(('127.0.0.1', 9))", Code.LISTENER_VALID),
    ("write_memory", EPERM, SENDMMSG, Code.CHILD_RESULT),
    ("getsockopt", EPERM, OWN, Code.PERFORM),
    ("getsockname", EPERM, "import socket; socket.create_server(('127.0.0.1', 0))", Code.PERFORM),
    ("nonblocking", EPERM, PAIR, Code.PERFORM),
    ("folders", EACCES, OWN, Code.CHILD_PROCESS),
    ("open_path", EPERM, OWN, Code.CHILD_PROCESS),
    ("unix_bound", EPERM, OWN, Code.PERFORM),
    ("unix_sockets", EPERM, OWN, Code.SOCKET_LIST),
    ("descriptors", EACCES, OWN, Code.CHILD_PROCESS),
    ("same_network", EACCES, ABSTRACT, Code.CHILD_PROCESS),
    ("unix_names", EACCES, ABSTRACT, Code.CHILD_PROCESS),
]

AS_BARE = {
    "connect": "performed for the program, which gets its errno",
    "listen": "performed for the program, which gets its errno",
    "sendto": "performed for the program, which gets its errno",
    "sendmsg": "performed for the program, which gets its errno",
    "executable": "an event is told without the name of its program",
    "descriptor": "a second look at what was found before; refused, it is looked for anew",
    "set_sync_wake_up": "a favour",
    "raise_descriptor_limit": "a favour",
    "receive_ends": "asks for the kernel's version",
    "landlock": "asks for a version; refused, `seclusion` is",
    "ptrace_scope": "a file that only a kernel with Yama has",
    "trace": "the self-test's attempt, which has to be refused",
    "thread_handles": "asked by doctor alone",
    "ended": "asked of a process that hides its descriptors, which is a fault already",
    "reach": "prepares other calls; a staged kernel is asked by its methods",
    "close": "an own descriptor",
    "located": "the quick way to where a path leads; refused, it is found step by step",
    "shutdown": "ends a call whose program is gone",
}
"""Calls whose refusal is no fault, and why."""

ELSEWHERE = {
    "notification_sizes": "test_recorder.py",
    "set_subreaper": "test_recorder.py",
    "set_no_new_privs": "test_recorder.py",
    "shut_in": "test_recorder.py",
    "seclusion": "test_recorder.py",
    "install_filter": "test_recorder.py",
    "set_dumpable": "test_recorder.py",
    "children": "test_recorder.py",
    "receive": "test_recorder.py",
    "send": "test_recorder.py",
    "close_range": "test_recorder.py",
    "kill": "test_recorder.py",
    "poll": "test_selftest.py",
    "status": "test_selftest.py",
    "tgkill": "test_supervisor.py",
    "assume": "tests/enforce/test_outer_filter.py",
    "send_timeout": "test_supervisor.py",
    "same_mounts": "test_file_calls.py",
    "same_users": "test_resolved_paths.py",
    "root_of": "test_file_calls.py",
    "folder_of": "test_resolved_paths.py",
    "open_file": "test_resolved_paths.py",
    "link_of": "test_resolved_paths.py",
    "entry": "test_file_calls.py",
    "target": "test_resolved_paths.py",
    "is_procfs": "test_resolved_paths.py",
}
"""Calls that are refused in other tests."""


class Late(Kernel):
    """A kernel that begins to refuse one call once the command runs: the canary's is the last that passes."""

    def __init__(self, call: str, errno: int, mark: Path) -> None:
        super().__init__()
        real = getattr(self, call)

        def refuse(*arguments: object, **options: object) -> object:
            if not mark.exists():
                return real(*arguments, **options)
            raise OSError(errno, f"{call}: {os.strerror(errno)}")

        setattr(self, call, refuse)
        if call == "unix_names":  # asked only for a network namespace of the program's own
            setattr(self, "same_network", lambda _tid: False)  # noqa: B010  mypy knows a method


def late(tmp_path: Path, call: str, errno: int, code: str) -> Outcome:
    mark = tmp_path / "begun"
    program = f"open({str(mark)!r}, 'w').close()\n{code}"
    found = python(program, env={"HERE": str(tmp_path)}, expect_exit=None)
    return run(
        never(), found, record_root=str(tmp_path), proven=True, kernel=Late(call, errno, mark)
    )


@pytest.mark.parametrize(("call", "errno", "code", "want"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_call_that_is_refused_in_the_run_is_a_fault_with_its_code(
    tmp_path: Path, call: str, errno: int, code: str, want: Code
) -> None:
    outcome = late(tmp_path, call, errno, code)
    assert want in {fault.code for fault in outcome.record.faults}, outcome.record
    (control,) = outcome.record.controls
    assert (control.verdict, control.code) == (Verdict.CAPABILITY_ERROR, want)
    assert outcome.exit_code is ExitCode.CAPABILITY


@pytest.mark.parametrize("code", sorted({row[2] for row in REFUSED}))
def test_the_same_program_passes_where_nothing_is_refused(tmp_path: Path, code: str) -> None:
    outcome = late(tmp_path, "executable", EPERM, code)  # a favour: the name of the program
    assert outcome.record.controls[0].verdict is Verdict.PASS, outcome.record
    assert outcome.record.faults == ()


def test_each_call_of_the_seam_is_staged() -> None:
    known = {
        name for name in dir(Kernel) if not name.startswith("_") and callable(getattr(Kernel, name))
    }
    staged = {row[0] for row in REFUSED} | set(AS_BARE) | set(ELSEWHERE)
    assert known - staged == set(), "calls whose refusal nobody stages"
    assert staged - known == set(), "calls that there are none of"
