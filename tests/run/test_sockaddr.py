"""Raw addresses, as the kernel reads them."""

from __future__ import annotations

import socket
import struct

import pytest

from flowproof.addresses import parse_address
from flowproof.run.sockaddr import Inet, Malformed, Netlink, SocketAddress, Unix, Unspecified, parse


def v4(address: str, port: int = 443, family: int = socket.AF_INET) -> bytes:
    return (
        struct.pack("=H", family) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(8)
    )


def v6(address: str, port: int = 443) -> bytes:
    packed = socket.inet_pton(socket.AF_INET6, address)
    return struct.pack("=H", 10) + struct.pack(">HI", port, 7) + packed + struct.pack("=I", 3)


def inet(family: int, text: str, port: int, raw: bytes) -> Inet:
    parsed = parse_address(text)
    assert parsed is not None
    return Inet(family, parsed[1], port, raw)


CASES: list[tuple[str, bytes, SocketAddress]] = [
    ("v4", v4("10.0.0.9"), inet(4, "10.0.0.9", 443, v4("10.0.0.9"))),
    ("v4 long", v4("10.0.0.9") + b"x", inet(4, "10.0.0.9", 443, v4("10.0.0.9") + b"x")),
    ("v4 wildcard is loopback", v4("0.0.0.0"), inet(4, "127.0.0.1", 443, v4("127.0.0.1"))),
    ("v6", v6("2001:db8::1"), inet(6, "2001:db8::1", 443, v6("2001:db8::1"))),
    ("v6 without scope", v6("::1")[:24], inet(6, "::1", 443, v6("::1")[:24])),
    ("v6 wildcard is loopback", v6("::"), inet(6, "::1", 443, v6("::1"))),
    ("mapped is v4", v6("::ffff:10.0.0.9"), inet(4, "10.0.0.9", 443, v6("::ffff:10.0.0.9"))),
    ("mapped wildcard", v6("::ffff:0.0.0.0"), inet(4, "127.0.0.1", 443, v6("::ffff:127.0.0.1"))),
    ("v4 short", v4("10.0.0.9")[:15], Malformed(2)),
    ("v6 short", v6("::1")[:23], Malformed(10)),
    ("empty", b"", Malformed(None)),
    ("one byte", b"\x02", Malformed(None)),
    ("over long", v4("10.0.0.9") + bytes(120), Malformed(None)),
    ("unspecified names what udp would reach", v4("10.0.0.9", family=0),
     Unspecified(inet(4, "10.0.0.9", 443, v4("10.0.0.9")))),
    ("unspecified and short", b"\0\0", Unspecified(None)),
    ("netlink", struct.pack("=HHII", 16, 0, 0, 0), Netlink()),
    ("vsock", struct.pack("=H", 40) + bytes(14), Malformed(40)),
    ("unix path", b"\x01\0/run/x.sock\0junk", Unix(b"/run/x.sock", None)),
    ("unix path without its end", b"\x01\0" + b"a" * 108, Unix(b"a" * 108, None)),
    ("unix abstract keeps every byte", b"\x01\0\0na\0me", Unix(None, b"na\0me")),
    ("unix unnamed", b"\x01\0", Unix(None, None)),
    ("unix over long", b"\x01\0" + b"a" * 109, Malformed(1)),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_an_address_is_read_as_the_kernel_reads_it(raw: bytes, expected: SocketAddress) -> None:
    assert parse(raw) == expected


def test_a_bound_wildcard_stays_the_wildcard() -> None:
    assert parse(v4("0.0.0.0", 80), bound=True) == Inet(4, 0, 80, v4("0.0.0.0", 80))
    assert parse(v6("::", 80), bound=True) == Inet(6, 0, 80, v6("::", 80))


def test_loopback_is_told_by_address() -> None:
    for address, expected in (("127.9.9.9", True), ("128.0.0.1", False)):
        found = parse(v4(address))
        assert isinstance(found, Inet)
        assert found.loopback is expected


def test_the_text_is_canonical() -> None:
    found = parse(v6("2001:DB8:0:0::1"))
    assert isinstance(found, Inet)
    assert found.text == "2001:db8::1"
