"""libseccomp's opinion on numbers, and on the number-only part of the program."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from authored import policy

from flowproof.lower.backend import compile_policy
from flowproof.lower.seccomp import bpf as encoding
from flowproof.lower.seccomp.numbers import SYSCALLS
from flowproof.verify import bpf, libseccomp

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBER_ONLY = ("connect", "sendmsg", "sendmmsg", "listen")
IO_URING = ("io_uring_setup", "io_uring_enter", "io_uring_register")

needs_libseccomp = pytest.mark.skipif(
    not libseccomp.available() and not os.environ.get("CI"),
    reason="libseccomp is not installed: apt-get install libseccomp2",
)


@needs_libseccomp
@pytest.mark.parametrize("arch", ARCH)
def test_numbers_are_those_of_libseccomp(arch: str) -> None:
    known = {call: libseccomp.number(arch, call) for call in SYSCALLS[arch]}
    wrong = {
        call: (SYSCALLS[arch][call], found)
        for call, found in known.items()
        if found is not None and found != SYSCALLS[arch][call]
    }
    assert not wrong
    assert sum(found is not None for found in known.values()) > 300


@needs_libseccomp
def test_a_call_that_is_none_has_no_number() -> None:
    assert libseccomp.number("x86_64", "conect") is None
    assert libseccomp.number("aarch64", "open") is None


@needs_libseccomp
@pytest.mark.parametrize("arch", ARCH)
def test_number_only_part_agrees_with_libseccomp(arch: str) -> None:
    ours = compile_policy(
        policy({"look": "observe connect to anything", "srv": "observe listen"}), f"linux-{arch}"
    ).program
    assert ours is not None
    program = encoding.decode(encoding.encode(ours.instructions))
    theirs = bpf.decode(libseccomp.exported(arch, NUMBER_ONLY, IO_URING))
    bpf.check(theirs)
    reads = ("sendto", "setsockopt", "socket", "socketpair")  # they look at an argument
    reading = {SYSCALLS[arch][call] for call in reads}
    compared = 0
    for number in range(1200):
        if number in reading:
            continue
        wanted = bpf.run(theirs, bpf.data(number, ARCH[arch])).action
        assert bpf.run(program, bpf.data(number, ARCH[arch])).action == wanted, number
        compared += wanted != 0x7FFF0000
    assert compared == len(NUMBER_ONLY) + len(IO_URING)


def test_compiling_imports_no_libseccomp() -> None:
    script = (
        "import sys; import flowproof.lower.backend, flowproof.lower.seccomp.compile,"
        " flowproof.lower.seccomp.listing, flowproof.verify.bpf, flowproof.artifact.codec;"
        " sys.exit('pyseccomp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


SLOW = [
    "dataclasses",
    "typing",
    "pathlib",
    "logging",
    "inspect",
    "rich",
    "lark",
    "jinja2",
    "jsonschema",
    "uuid",
    "ipaddress",
    "random",
]


@pytest.mark.parametrize("backend", ["seccomp", "wfp"])
def test_compiling_imports_nothing_that_is_slow_to_start(backend: str) -> None:
    script = (
        f"import sys; import flowproof.lower.backend, flowproof.lower.{backend}.compile,"
        f" flowproof.lower.{backend}.listing, flowproof.artifact.codec;"
        f" print(*sorted(set({SLOW!r}) & sys.modules.keys()))"
    )
    answer = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True
    )
    assert not answer.stdout.split()
