"""The seam: what each call gives on this kernel, and what it does where the kernel is older."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import threading
from errno import EBADF, EFAULT, EINVAL, ENOENT, EPERM
from pathlib import Path
from typing import Any

import pytest

from flowproof.run import numbers as n
from flowproof.run.kernel import Kernel, ThreadStatus, WaitKillableError

linux = pytest.mark.skipif(sys.platform != "linux", reason="the calls are Linux's")


def test_the_module_imports_where_nothing_of_it_works() -> None:
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('fcntl', 'resource')))\n"
        "import platform; platform.system = lambda: 'Windows'\n"
        "from flowproof.run.kernel import Kernel\n"
        "from flowproof.run.supervisor import Supervisor\n"
        "Kernel()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@linux
def test_memory_is_read_to_where_its_mapping_ends() -> None:
    kernel = Kernel()
    page = ctypes.create_string_buffer(b"some bytes", 10)
    address = ctypes.addressof(page)
    assert kernel.read_memory(os.getpid(), address, 10) == b"some bytes"
    large = ctypes.create_string_buffer(b"x" * 10000, 10000)
    assert kernel.read_memory(os.getpid(), ctypes.addressof(large), 10000) == b"x" * 10000
    both = [(address, 4), (address + 5, 5)]
    assert kernel.gather_memory(os.getpid(), both) == b"somebytes"
    assert kernel.gather_memory(os.getpid(), [(address, 0)]) == b""
    with pytest.raises(OSError, match="process_vm_readv") as found:
        kernel.read_memory(os.getpid(), 8, 10)
    assert found.value.errno == EFAULT
    with pytest.raises(OSError, match="process_vm_readv") as found:
        kernel.gather_memory(os.getpid(), [(8, 10)])
    assert found.value.errno == EFAULT


@linux
def test_memory_is_written_in_place() -> None:
    page = ctypes.create_string_buffer(b"some bytes", 10)
    assert Kernel().write_memory(os.getpid(), ctypes.addressof(page) + 5, b"BYTES") == 5
    assert page.raw == b"some BYTES"


@linux
def test_a_descriptor_is_duplicated_and_a_bad_one_is_told() -> None:
    kernel = Kernel()
    read, write = os.pipe()
    pidfd = kernel.pidfd_open(os.getpid())
    duplicate = kernel.pidfd_getfd(pidfd, write)
    os.write(duplicate, b"x")
    assert os.read(read, 1) == b"x"
    os.close(write)
    with pytest.raises(OSError, match="pidfd_getfd") as found:
        kernel.pidfd_getfd(pidfd, write)
    assert found.value.errno == EBADF
    for descriptor in (read, duplicate, pidfd):
        os.close(descriptor)


class OlderKernel(Kernel):
    """A kernel without PIDFD_THREAD, on which kcmp says *files*: 0 is "shared"."""

    def __init__(self, files: int) -> None:
        super().__init__()
        self.asked: list[tuple[int, int]] = []
        real = self._syscall
        open_number, compare = self._numbers["pidfd_open"], self._numbers["kcmp"]

        def syscall(number: int, *arguments: Any) -> Any:  # noqa: ANN401  a C function
            if number == open_number:
                tid, flags = arguments
                self.asked.append((tid, flags))
                if flags or tid != os.getpid():
                    ctypes.set_errno(EINVAL)
                    return -1
            if number == compare:
                return files
            return real(number, *arguments)

        self._c: Any = _Library(self._c, syscall)


class _Library:
    def __init__(self, real: Any, syscall: Any) -> None:  # noqa: ANN401  a C library
        self._real = real
        self.syscall = syscall

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._real, name)


def in_thread(act: Any) -> Any:  # noqa: ANN401  whatever the act gives
    """Call act(the id of a thread that is not the leader) while that thread lives."""
    ready, done = threading.Event(), threading.Event()
    tids: list[int] = []

    def wait() -> None:
        tids.append(threading.get_native_id())
        ready.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait()
    try:
        return act(tids[0])
    finally:
        done.set()
        thread.join()


@linux
def test_a_thread_s_descriptors_are_the_leader_s_only_if_the_kernel_says_so() -> None:
    kernel = OlderKernel(files=0)
    os.close(in_thread(kernel.pidfd_open))
    assert kernel.asked[-1] == (os.getpid(), 0)
    with pytest.raises(OSError, match=r"6\.9") as found:
        in_thread(OlderKernel(files=1).pidfd_open)
    assert found.value.errno == EPERM


@linux
def test_a_kernel_without_killable_waits_is_told_apart() -> None:
    kernel = Kernel()
    assert kernel._knows_flag(n.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
    assert not kernel._knows_flag(1 << 20)

    class WithoutKillable(Kernel):
        def _knows_flag(self, flag: int) -> bool:
            return False

    with pytest.raises(WaitKillableError):
        WithoutKillable().install_filter(b"")  # EINVAL, whatever the reason
    with pytest.raises(OSError, match="seccomp") as found:
        kernel.install_filter(b"")
    assert not isinstance(found.value, WaitKillableError)


def test_a_status_is_read_by_its_fields() -> None:
    text = (
        "Name:\tx\nTgid:\t7\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nThreads:\t2\n"
        "SigPnd:\t0000000000000001\nShdPnd:\t02\nSigBlk:\t04\nSigIgn:\t08\nSigCgt:\t10\n"
    )
    found = ThreadStatus(text)
    assert (found.tgid, found.threads, found.uids, found.groups) == (7, 2, (1, 2, 3, 4), (9, 10))
    assert (found.thread, found.shared, found.blocked, found.ignored, found.caught) == (
        1,
        2,
        4,
        8,
        16,
    )


@linux
def test_children_are_found_with_and_without_the_kernel_s_list() -> None:
    kernel = Kernel()
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in kernel.children(os.getpid())
        assert child.pid in kernel._children_by_parent(os.getpid())
        child.kill()


@linux
def test_bound_unix_sockets_are_listed_with_their_file(tmp_path: Path) -> None:
    path = str(tmp_path / "x.sock")
    kernel = Kernel()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(1)
        status = os.stat(path)
        device = os.major(status.st_dev) << 20 | os.minor(status.st_dev)
        inode = os.fstat(server.fileno()).st_ino
        (found,) = [s for s in kernel.unix_sockets() if s.inode == inode]
        assert found.file == (device, status.st_ino & 0xFFFFFFFF)
        assert found.name is not None
        assert found.name.rstrip(b"\0") == os.fsencode(path)
        assert kernel.unix_bound(os.fsencode(path))
    assert not kernel.unix_bound(os.fsencode(path))


@linux
def test_a_path_is_opened_below_another_root(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "own").write_text("x")
    (tmp_path / "link").symlink_to("/etc/own")
    kernel = Kernel()
    root = os.open(tmp_path, n.O_PATH)
    found = kernel.open_path(b"/link", None, root)
    assert os.readlink(f"/proc/self/fd/{found}") == str(tmp_path / "etc" / "own")
    with pytest.raises(OSError, match="openat2") as missing:
        kernel.open_path(b"/etc/hostname", None, root)
    assert missing.value.errno == ENOENT
    for descriptor in (root, found):
        os.close(descriptor)


@linux
def test_a_send_timeout_is_seen() -> None:
    kernel = Kernel()
    with socket.socket() as sock:
        assert not kernel.send_timeout(sock.fileno())
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, (1).to_bytes(8, "little") + bytes(8))
        assert kernel.send_timeout(sock.fileno())
