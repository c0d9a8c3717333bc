"""The trapped calls against a kernel of paper: what is copied is what is judged is what is acted with."""

from __future__ import annotations

import itertools
import struct
from errno import (
    EACCES,
    EBADF,
    ECONNREFUSED,
    EFAULT,
    EINVAL,
    EIO,
    EMFILE,
    EMSGSIZE,
    ENOBUFS,
    ENOENT,
    ENOMEM,
    EPERM,
    ESRCH,
)

import pytest
from paper import (
    ADDRESSES,
    LENGTHS,
    NETLINK,
    PING,
    SOCKETS,
    STREAM,
    TCP4,
    UDP4,
    UDP6,
    WITH_ADDRESS,
    Bench,
    v4,
    v6,
)
from supervision import bound, tables

from flowproof.record.codes import Code
from flowproof.run import numbers as n
from flowproof.run.caller import AnswerError, FaultError, StaleError
from flowproof.run.calls.fixed import family_name
from flowproof.run.sockaddr import Inet, Unspecified, parse


def reached(descriptor: int, address: bytes) -> Inet | None:
    """Where the kernel would go, read anew; None where it goes nowhere."""
    found = parse(address)
    if isinstance(found, Unspecified):
        return found.inet if SOCKETS[descriptor][0] == n.AF_INET else None
    return found if isinstance(found, Inet) else None


@pytest.mark.parametrize("call", WITH_ADDRESS)
@pytest.mark.parametrize("descriptor", list(SOCKETS))
def test_no_cell_lets_through_what_is_refused_or_cannot_be_parsed(
    call: str, descriptor: int
) -> None:
    seen: set[str] = set()
    for raw, length, mapped in itertools.product(ADDRESSES, LENGTHS, (0, 7, 28, 200)):
        bench = Bench()
        full = (raw + bytes(200))[:mapped] if mapped else None
        try:
            result = bench.send(call, descriptor, full, length=length)
        except (AnswerError, FaultError) as outcome:
            seen.add(type(outcome).__name__)
            assert bench.kernel.done == []
            bench.caller.close()
            assert bench.kernel.open == []
            continue
        seen.add("refused" if result < 0 else "done")
        for action in bench.kernel.done:
            address = action[2]
            assert isinstance(address, bytes)
            where = reached(descriptor, address)
            if (
                address and where is None
            ):  # what remains goes nowhere, or to the kernel's own routing
                family = int.from_bytes(address[:2], "little")
                assert (call, family) == ("connect", n.AF_UNSPEC) or (family, descriptor) == (
                    n.AF_NETLINK,
                    NETLINK,
                )
            elif where is not None and not (call == "connect" and address[:2] == b"\0\0"):
                assert where.loopback, address
                assert where.text != "127.0.0.2", address
    assert "FaultError" in seen
    assert "refused" in seen
    if descriptor not in (STREAM, PING):
        assert "done" in seen


@pytest.mark.parametrize("call", WITH_ADDRESS)
def test_the_bytes_acted_with_are_the_bytes_judged(call: str) -> None:
    bench = Bench()
    raw = v4("127.0.0.3", 9)
    assert bench.send(call, UDP4, raw) == {"connect": 0, "sendmmsg": 1}.get(call, 4)
    (action,) = bench.kernel.done
    assert action[2] == raw
    ((_tag, ms, pid, program, operation, *rest),) = bench.events
    assert (ms, pid, program) == (5, 7, "/bin/program")
    assert operation == ("connect" if call == "connect" else "send")
    assert rest == ["udp", "127.0.0.3", 9, False, 0, (), (), None]


@pytest.mark.parametrize("call", WITH_ADDRESS)
def test_the_wildcard_is_acted_on_as_loopback(call: str) -> None:
    bench = Bench()
    bench.send(call, UDP4, v4("0.0.0.0"))
    assert bench.kernel.done[0][2] == v4("127.0.0.1")


@pytest.mark.parametrize("call", WITH_ADDRESS[1:])
def test_an_unspecified_family_is_judged_by_its_address(call: str) -> None:
    refused, allowed = Bench(), Bench()
    assert refused.send(call, UDP4, v4("10.0.0.9", family=0)) == -ECONNREFUSED
    assert refused.events[0][6] == "10.0.0.9"
    assert allowed.send(call, UDP4, v4("127.0.0.1", family=0)) > 0
    assert allowed.kernel.done[0][2] == v4("127.0.0.1")


def test_an_unspecified_connect_dissolves_and_is_no_attempt() -> None:
    bench = Bench()
    assert bench.send("connect", UDP4, v4("10.0.0.9", family=0)) == 0
    assert bench.events == []


@pytest.mark.parametrize("call", WITH_ADDRESS)
def test_an_ipv4_address_on_an_ipv6_socket_is_judged_as_ipv4(call: str) -> None:
    bench = Bench()
    assert bench.send(call, UDP6, v4("10.0.0.9")) == -ECONNREFUSED
    assert bench.events[0][5:7] == ("udp", "10.0.0.9")


def test_a_refused_udp_connect_is_a_probe_that_nobody_counts() -> None:
    bench = Bench()
    assert bench.send("connect", UDP4, v4("10.0.0.9")) == -ECONNREFUSED
    ((*_head, refused, by, asserting, _observing, _note),) = bench.events
    assert (_head[4], refused, by, asserting) == ("probe", True, 2, ())
    assert bench.send("connect", TCP4, v4("10.0.0.9")) == -ECONNREFUSED
    assert bench.events[0][10] == (2,)


@pytest.mark.parametrize("call", WITH_ADDRESS)
@pytest.mark.parametrize("errno", [EPERM, EACCES, ENOMEM])
def test_memory_that_may_not_be_read_is_a_fault(call: str, errno: int) -> None:
    bench = Bench()
    bench.kernel.faults["read_memory"] = errno
    with pytest.raises(FaultError) as found:
        bench.send(call, UDP4, v4("127.0.0.1"))
    assert (found.value.code, found.value.errno) == (Code.CHILD_MEMORY, EPERM)
    assert bench.kernel.done == []


@pytest.mark.parametrize("errno", [EFAULT, EIO])
def test_an_address_that_is_not_mapped_is_a_fault_and_bare_to_the_program(errno: int) -> None:
    bench = Bench()
    bench.kernel.faults["read_memory"] = errno
    with pytest.raises(FaultError) as found:
        bench.send("connect", UDP4, v4("127.0.0.1"))
    assert (found.value.code, found.value.errno) == (Code.CHILD_MEMORY, EFAULT)


@pytest.mark.parametrize(
    ("step", "code"),
    [("pidfd_open", Code.CHILD_HANDLE), ("pidfd_getfd", Code.CHILD_DESCRIPTOR)],
)
@pytest.mark.parametrize("errno", [EPERM, EACCES, EMFILE, ENOMEM])
def test_a_descriptor_that_may_not_be_fetched_is_a_fault(step: str, code: Code, errno: int) -> None:
    bench = Bench()
    bench.kernel.faults[step] = errno
    with pytest.raises(FaultError) as found:
        bench.send("connect", UDP4, v4("127.0.0.1"))
    assert (found.value.code, found.value.errno) == (code, EPERM)
    assert bench.kernel.done == []


@pytest.mark.parametrize("step", ["read_memory", "pidfd_open", "pidfd_getfd"])
def test_a_caller_that_is_gone_is_no_fault(step: str) -> None:
    bench = Bench()
    bench.kernel.faults[step] = ESRCH
    bench.kernel.faults["id_valid"] = ENOENT
    with pytest.raises(StaleError):
        bench.send("connect", UDP4, v4("127.0.0.1"))
    assert (bench.kernel.done, bench.events) == ([], [])


def test_a_caller_that_died_after_its_descriptor_was_fetched_is_not_acted_for() -> None:
    bench = Bench()
    bench.kernel.faults["id_valid"] = ENOENT
    with pytest.raises(StaleError):
        bench.send("connect", UDP4, v4("127.0.0.1"))
    bench.caller.close()
    assert (bench.kernel.done, bench.kernel.open) == ([], [])


def test_a_bad_descriptor_is_bare_and_no_event() -> None:
    bench = Bench()
    for number in (5, -1):
        with pytest.raises(AnswerError) as found:
            bench.send("connect", number, v4("10.0.0.9"))
        assert found.value.errno == EBADF
    assert bench.events == []


@pytest.mark.parametrize("call", WITH_ADDRESS[1:])
def test_a_call_without_a_name_is_performed_and_no_event(call: str) -> None:
    bench = Bench()
    assert bench.send(call, UDP4, None, length=0) > 0
    assert bench.kernel.done[0][2] == b""
    assert bench.events == []


def test_routing_netlink_is_performed_and_no_event() -> None:
    bench = Bench()
    assert bench.send("sendto", NETLINK, struct.pack("=HHII", 16, 0, 0, 0)) == 4
    assert bench.events == []


def test_a_socket_of_a_refused_protocol_is_refused_where_it_shows() -> None:
    bench = Bench()
    assert bench.send("sendto", PING, v4("127.0.0.1")) == -EPERM
    assert bench.events[0][5] == "other"


def test_an_unreadable_payload_is_bare() -> None:
    bench = Bench()
    bench.kernel.faults["gather_memory"] = EFAULT
    for call in WITH_ADDRESS[1:]:
        with pytest.raises(AnswerError) as found:
            bench.send(call, UDP4, v4("127.0.0.1"))
        assert found.value.errno == EFAULT


def test_a_message_too_large_to_copy_is_refused_and_recorded() -> None:
    bench = Bench()
    pointer = bench.kernel.map(v4("127.0.0.1"))
    with pytest.raises(AnswerError) as found:
        bench.call("sendto", UDP4, 0x1000000, (64 << 20) + 1, 0, pointer, 16)
    assert found.value.errno == EMSGSIZE
    assert bench.events[0][-1] == "too large"


def test_pages_that_the_kernel_would_keep_are_not_ours_to_give() -> None:
    for call in WITH_ADDRESS[1:]:
        with pytest.raises(AnswerError) as found:
            Bench().send(call, UDP4, v4("127.0.0.1"), flags=n.MSG_ZEROCOPY)
        assert found.value.errno == ENOBUFS


def control(level: int, kind: int, data: bytes) -> bytes:
    raw = struct.pack("=Qii", 16 + len(data), level, kind) + data
    return raw + bytes(-len(raw) % 8)


def test_each_descriptor_sent_along_is_fetched_and_closed() -> None:
    bench = Bench()
    extra = control(n.SOL_SOCKET, n.SCM_RIGHTS, struct.pack("=2i", 600, TCP4))
    assert bench.send("sendmsg", STREAM, None, length=0, control=extra) == 4
    sent = bench.kernel.done[0][4]
    assert sent == extra


@pytest.mark.parametrize(
    ("extra", "errno"),
    [(control(n.SOL_SOCKET, n.SCM_RIGHTS, struct.pack("=i", 5)), EBADF),
     (struct.pack("=Qii", 99, 1, 1), EINVAL),
     (control(n.SOL_SOCKET, n.SCM_RIGHTS, struct.pack("=254i", *range(254))), EINVAL),
     (bytes(1 << 17), ENOBUFS)],
)  # fmt: skip
def test_control_data_that_the_kernel_refuses_is_refused_as_bare(extra: bytes, errno: int) -> None:
    bench = Bench()
    with pytest.raises(AnswerError) as found:
        bench.send("sendmsg", STREAM, None, length=0, control=extra)
    assert found.value.errno == errno
    assert bench.kernel.done == []


@pytest.mark.parametrize(
    "extra",
    [control(n.IPPROTO_IPV6, 57, bytes(24)),  # IPV6_RTHDR: a source route
     control(n.IPPROTO_IP, 7, bytes(8)),  # IP_RETOPTS: the same of IPv4
     control(n.SOL_SOCKET, n.SCM_CREDENTIALS, struct.pack("=iii", 8, 1, 1)),
     control(n.SOL_SOCKET, 4711, b"")],
)  # fmt: skip
def test_control_data_that_leads_elsewhere_is_a_fault(extra: bytes) -> None:
    bench = Bench()
    with pytest.raises(FaultError) as found:
        bench.send("sendmsg", UDP6, v6("::1"), control=extra)
    assert (found.value.code, found.value.errno) == (Code.UNSUPPORTED_CALL, EPERM)
    assert bench.kernel.done == []


def interface(number: int, *, family: int = 6, more: bytes = b"") -> bytes:
    """Return control data that has a message leave by an interface."""
    if family == 4:
        return control(n.IPPROTO_IP, n.IP_PKTINFO, struct.pack("=i8x", number) + more)
    return control(n.IPPROTO_IPV6, n.IPV6_PKTINFO, struct.pack("=16xi", number) + more)


@pytest.mark.parametrize(
    ("descriptor", "to", "extra"),
    [(UDP4, v4("127.0.0.1"), interface(2, family=4)),
     (UDP4, v4("127.9.8.7"), interface(2, family=4)),
     (UDP4, v4("0.0.0.0"), interface(2, family=4)),
     (UDP6, v6("::1"), interface(2)),
     (UDP6, v6("::1"), interface(2, more=bytes(4))),  # the kernel takes a longer one as well
     (UDP6, v6("::"), interface(-1)),
     (UDP6, v6("::ffff:127.0.0.1"), interface(2)),
     (UDP4, None, interface(2, family=4))],  # connected, perhaps to loopback
)  # fmt: skip
def test_what_goes_to_loopback_leaves_by_no_other_interface(
    descriptor: int, to: bytes | None, extra: bytes
) -> None:
    bench = Bench()
    with pytest.raises(FaultError) as found:
        bench.send("sendmsg", descriptor, to, control=extra, length=len(to or b""))
    assert (found.value.code, found.value.errno) == (Code.UNSUPPORTED_CALL, EPERM)
    assert bench.kernel.done == []


@pytest.mark.parametrize(
    ("to", "extra"),
    [(v4("127.0.0.1"), interface(0, family=4)),  # a source address alone
     (v4("127.0.0.1"), interface(1, family=4)),  # loopback's own
     (v4("10.0.0.9"), interface(2, family=4)),  # judged by its address, whichever way it takes
     (None, interface(1, family=4))],
)  # fmt: skip
def test_an_interface_that_leads_nowhere_else_is_let_be(to: bytes | None, extra: bytes) -> None:
    bench = Bench(bound(tables(refusing=False)).decisions)
    assert bench.send("sendmsg", UDP4, to, control=extra, length=len(to or b"")) == 4
    assert bench.kernel.done[0][4] == extra


def test_sendmmsg_ends_at_the_first_refusal_and_tells_what_was_sent() -> None:
    bench = Bench()
    kernel = bench.kernel
    vector = kernel.map(struct.pack("=QQ", kernel.map(b"abc"), 3))

    def element(address: str) -> bytes:
        return struct.pack("=QI4xQQQQ8xI4x", kernel.map(v4(address)), 16, vector, 1, 0, 0, 0)

    array = kernel.map(element("127.0.0.1") + element("10.0.0.9") + element("127.0.0.1"))
    assert bench.call("sendmmsg", UDP4, array, 3, 0) == 1
    assert [action[2] for action in kernel.done] == [v4("127.0.0.1")]
    assert kernel.written == {array + 56: struct.pack("=I", 3)}
    assert [(event[6], event[8]) for event in bench.events] == [
        ("127.0.0.1", False),
        ("10.0.0.9", True),
    ]


def test_sendmmsg_refused_at_once_is_an_error() -> None:
    bench = Bench()
    assert bench.send("sendmmsg", UDP4, v4("10.0.0.9")) == -ECONNREFUSED
    assert len(bench.events) == 1


def test_a_length_that_cannot_be_written_back_is_a_fault() -> None:
    bench = Bench()
    bench.kernel.faults["write_memory"] = EPERM
    with pytest.raises(FaultError) as found:
        bench.send("sendmmsg", UDP4, v4("127.0.0.1"))
    assert found.value.code is Code.CHILD_RESULT


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((17, 3, 0), "packet"), ((2, 10, 0), "packet"), ((2, 3, 1), "raw"), ((10, 3, 58), "raw"),
     ((40, 1, 0), "vsock"), ((2, 1, 132), "sctp"), ((2, 1, 262), "mptcp"), ((2, 6, 33), "dccp"),
     ((44, 3, 0), "xdp"), ((31, 5, 0), "bluetooth"), ((38, 5, 0), "other"), ((2, 2, 1), "other"),
     ((16, 3, 9), "other")],
)  # fmt: skip
def test_a_refused_socket_has_the_language_s_name(
    arguments: tuple[int, int, int], name: str
) -> None:
    assert family_name(*arguments) == name
