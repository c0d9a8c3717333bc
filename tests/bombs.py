"""Input that is small and costs much where somebody was careless: about 100 kB each."""

from __future__ import annotations

from collections.abc import Callable

Files = dict[str, bytes]
SIZE = 100_000

HEAD = "name: T\nagent:\n  command: python3 bot.py\ncontrol:\n  id: c\n"


def flow(rest: str, head: str = HEAD) -> Files:
    return {"x.flow.yaml": (head + rest).encode()}


def rules(sentences: list[str]) -> Files:
    return flow("  rules:\n" + "".join(f"    r.{at}: '{s}'\n" for at, s in enumerate(sentences)))


def one(sentence: str) -> Files:
    return rules([sentence])


def _times(text: str) -> str:
    return text * (SIZE // len(text))


def _odd(count: int, start: int = 1) -> str:
    return "{" + ",".join(str(port) for port in range(start, start + 2 * count, 2)) + "}"


def _set_chain(length: int, member: str) -> Files:
    lines = [f"    s{at}: '{member.format(at + 1)}'\n" for at in range(length)]
    last = f"    s{length}: 10.0.0.1\n"
    return flow("  sets:\n" + "".join(lines) + last + "  rules:\n    r: allow connect to @s0\n")


def _pack_chain(length: int) -> Files:
    files = flow("  uses: [p0.policy.yaml]\n")
    for at in range(length):
        uses = f"uses: [p{at + 1}.policy.yaml]\n" if at + 1 < length else ""
        files[f"p{at}.policy.yaml"] = (
            f"policy: p{at}\n{uses}rules:\n  p{at}.r: deny connect to 10.0.0.{at % 256}\n".encode()
        )
    return files


def _pack_lattice(width: int, depth: int) -> Files:
    """Each pack of a layer uses all of the next: as many ways as width to the power of depth."""
    files = flow("  uses: [p0x0.policy.yaml]\n")
    for layer in range(depth):
        below = ", ".join(f"p{layer + 1}x{at}.policy.yaml" for at in range(width))
        for at in range(width):
            uses = f"uses: [{below}]\n" if layer + 1 < depth else ""
            files[f"p{layer}x{at}.policy.yaml"] = f"policy: p{layer}x{at}\n{uses}".encode()
    return files


def _many_members(count: int) -> str:
    return ", ".join(f"10.{at // 250 % 250}.{at % 250}.1" for at in range(count))


def _broken_lines() -> str:
    return "".join(f"    r.{at}: deny connect to a.b: c\n" for at in range(SIZE // 36))


BOMBS: dict[str, Callable[[], Files]] = {
    # bytes and YAML
    "nothing": lambda: {"x.flow.yaml": b""},
    "zero bytes": lambda: {"x.flow.yaml": b"\0" * SIZE},
    "one long key": lambda: {"x.flow.yaml": b"k" * SIZE},
    "one long line": lambda: flow(f"  title: {'x' * SIZE}\n"),
    "blanks in front of an open bracket": lambda: flow("  title: a" + " " * SIZE + "[\n  - {"),
    "blanks and colons": lambda: {
        "x.flow.yaml": b"a" + b" " * (SIZE // 2) + b": b: c [" + b" " * (SIZE // 2)
    },
    "quotes in a line": lambda: {"x.flow.yaml": b"a: " + b"\"'" * (SIZE // 2)},
    "brackets": lambda: {"x.flow.yaml": b"[" * SIZE},
    "braces": lambda: {"x.flow.yaml": b"{a: " * (SIZE // 4)},
    "dashes": lambda: {"x.flow.yaml": b"- " * (SIZE // 2)},
    "question marks": lambda: {"x.flow.yaml": b"? " * (SIZE // 2)},
    "stairs": lambda: {
        "x.flow.yaml": "".join(" " * at + f"k{at}:\n" for at in range(400)).encode()
    },
    "aliases": lambda: {
        "x.flow.yaml": (
            "a: &a [x, x, x]\n"
            + "".join(
                f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join(['*' + chr(97 + at)] * 9)}]\n"
                for at in range(12)
            )
        ).encode()
    },
    "many anchors": lambda: flow(
        "  title: t\n" + "".join(f"  k{at}: &a{at} *b{at}\n" for at in range(5000))
    ),
    "many documents": lambda: {"x.flow.yaml": _times("---\na: b\n").encode()},
    "many breaks": lambda: flow("  rules:\n" + _broken_lines()),
    "many bad values": lambda: flow(
        "  rules:\n" + "".join(f"    r.{at}: @crm\n" for at in range(SIZE // 16))
    ),
    "many bad escapes": lambda: flow(
        "  rules:\n" + "".join(f'    r.{at}: "\\q"\n' for at in range(SIZE // 16))
    ),
    "many tabs": lambda: flow(
        "  rules:\n" + "".join(f"    r.{at}: 'a\n\t\tb'\n" for at in range(SIZE // 20))
    ),
    "tabs and quotes": lambda: flow("  title: x\n\t\t\t\n" + _times("  k: 'x'\n\t# y\n")),
    "tabs that indent": lambda: flow(
        "  rules:\n" + "".join(f"    r.{at}: x\n\t  y\n" for at in range(SIZE // 20))
    ),
    "duplicate keys": lambda: flow("  rules:\n" + _times("    r.a: deny connect to 10.0.0.1\n")),
    "unknown keys": lambda: flow("".join(f"  ruels{at}: x\n" for at in range(SIZE // 14))),
    "block scalars": lambda: flow(
        "  rules:\n" + "".join(f"    r.{at}: |\n      x\n" for at in range(SIZE // 20))
    ),
    "a deep block scalar": lambda: flow("  title: |2\n" + " " * 20_000 + "x\n" + _times("    y\n")),
    "a block scalar of blank lines": lambda: flow("  title: >+\n" + "\n" * SIZE),
    "a folded scalar": lambda: flow("  title: >\n" + _times("    a b\n\n      c\n")),
    "line breaks of every kind": lambda: flow('  title: "' + "a\r\n\r b\n" * (SIZE // 8) + '"\n'),
    "escapes": lambda: flow('  title: "' + "\\u0041\\\n " * (SIZE // 9) + '"\n'),
    "private use": lambda: flow(
        "  title: '" + "".join(map(chr, range(0xE000, 0xF8FF))) + "\x85\u2028?x'\n"
    ),
    "comments": lambda: flow(_times("# x\n")),
    "carriage returns": lambda: {"x.flow.yaml": b"\r" * SIZE},
    "a long command": lambda: flow("", f"name: T\nagent:\n  command: {'x' * SIZE}\n"),
    "a command of many words": lambda: flow(
        "", "name: T\nagent:\n  command: >-\n    " + _times("x y ")
    ),
    "a command of quotes": lambda: flow(
        "", "name: T\nagent:\n  command: |\n    " + "'\"'\"" * (SIZE // 4)
    ),
    "a timeout of many digits": lambda: flow(
        "", f"name: T\nagent:\n  command: x\n  timeout: {'9' * SIZE}\n"
    ),
    "a timeout of other digits": lambda: flow("", "name: T\nagent:\n  command: x\n  timeout: ²\n"),
    "an exit of many digits": lambda: flow(
        "", f"name: T\nagent:\n  command: x\n  expect_exit: {'9' * SIZE}\n"
    ),
    "many variables": lambda: flow(
        "",
        "name: T\nagent:\n  command: x\n  env:\n"
        + "".join(f"    A{at}: b\n" for at in range(9000)),
    ),
    "many steps": lambda: flow("steps:\n" + _times("  - assert_no_egress\n")),
    "many wrong steps": lambda: flow(
        "steps:\n" + "".join(f"  - step {at}\n" for at in range(9000))
    ),
    "many egress entries": lambda: {
        "x.flow.yaml": (
            "name: T\nagent:\n  command: x\n  allow_egress:\n"
            + "".join(f"    - h{at}.example:443\n" for at in range(4000))
        ).encode()
    },
    # packs
    "a chain of packs": lambda: _pack_chain(1200),
    "a lattice of packs": lambda: _pack_lattice(8, 12),
    "uses of nothing": lambda: flow(
        "  uses:\n" + "".join(f"    - p{at}.policy.yaml\n" for at in range(4000))
    ),
    "uses of itself": lambda: flow("  uses:\n" + _times("    - x.flow.yaml\n")),
    "a long name of a pack": lambda: flow(f"  uses: [{'p/' * 40_000}p.policy.yaml]\n"),
    # sentences
    "a long word": lambda: one(f"allow connect to {'x' * SIZE}"),
    "a long name": lambda: one(f"allow connect to {'x.' * (SIZE // 2)}example"),
    "a long name of many scripts": lambda: one(f"allow connect to {'ü' * (SIZE // 2)}.example"),
    "a name of many labels in another script": lambda: one(
        f"allow connect to {'ü.' * (SIZE // 3)}example"
    ),
    "a long address": lambda: one(f"allow connect to {'1.' * (SIZE // 2)}1"),
    "a long IPv6 address": lambda: one(f"allow connect to {'1:' * (SIZE // 2)}1"),
    "a long number": lambda: one(f"allow connect to 10.0.0.1:{'9' * SIZE}"),
    "a long prefix": lambda: one(f"allow connect to 10.0.0.0/{'9' * SIZE}"),
    "long octets": lambda: one(f"allow connect to {'9' * SIZE}.0.0.1"),
    "many colons": lambda: one("allow connect to " + "a:1" * (SIZE // 3)),
    "many words": lambda: one(f"allow connect to {'a.b ' * (SIZE // 4)}"),
    "many keywords": lambda: one(f"allow {'connect ' * (SIZE // 8)}"),
    "many misspelt keywords": lambda: one(f"allow {'conect ' * (SIZE // 8)}"),
    "many quotes": lambda: one("allow connect to " + '"a" ' * (SIZE // 4)),
    "glued quotes": lambda: one("allow connect to " + '"a"b ' * (SIZE // 5)),
    "open quotes": lambda: one("allow connect to " + 'a, "b ' * (SIZE // 6)),
    "an open quote": lambda: one('allow connect to "' + "a" * SIZE),
    "backslashes": lambda: one('allow connect to "' + "\\\\" * (SIZE // 2)),
    "many variables in a word": lambda: one("allow connect to " + "${A}" * (SIZE // 4)),
    "open variables": lambda: one("allow connect to " + "${A" * (SIZE // 3)),
    "many commas": lambda: one("allow connect to " + "," * SIZE),
    "many bad destinations": lambda: one(
        "allow connect to " + ", ".join(["10.0.0.256"] * (SIZE // 12))
    ),
    "many bad sentences": lambda: rules(["alow conect too 10.0.0.1"] * (SIZE // 36)),
    "a long reason": lambda: one(f'deny connect to 10.0.0.1 because "{"x" * SIZE}"'),
    "many operations": lambda: one("deny " + ", ".join(["delete"] * (SIZE // 8)) + " under /srv"),
    "a long path": lambda: one("deny delete under /" + "a/" * (SIZE // 2)),
    "a path of dots": lambda: one("deny delete under /" + "./" * (SIZE // 2)),
    "many paths": lambda: one("deny delete under " + ", ".join(f"/srv/{at}" for at in range(9000))),
    "many tools": lambda: one("deny call " + ", ".join(f"t{at}" for at in range(12000))),
    # sets of destinations
    "ports without neighbours": lambda: one(f"allow connect to 10.0.0.1:{_odd(16000)}"),
    "ports against ports": lambda: rules(
        [f"allow connect to 10.0.0.1:{_odd(9000)}", f"deny connect to 10.0.0.1:{_odd(9000, 2)}"]
    ),
    "a port each": lambda: one(
        "allow connect to " + ", ".join(f"10.0.0.0/8:{at}" for at in range(1, 12001, 2))
    ),
    "ports over addresses": lambda: one(
        "allow connect to "
        + ", ".join(f"10.0.0.0/8:{at}" for at in range(1, 4001, 2))
        + ", "
        + ", ".join(f"10.0.{at // 250}.{at % 250}:{at + 1}" for at in range(0, 4000, 2))
    ),
    "nested networks": lambda: one(
        "allow connect to "
        + ", ".join(
            f"10.{at // 256}.{at % 256}.0/{prefix}:{at + prefix}"
            for at in range(256)
            for prefix in range(24, 31)
        )
    ),
    "many addresses": lambda: one("allow connect to " + _many_members(7000)),
    "many exceptions": lambda: one("deny connect to 10.0.0.0/8 except " + _many_members(7000)),
    "many rules": lambda: rules(
        [f"allow connect to 10.{at // 250}.{at % 250}.1:443" for at in range(2500)]
    ),
    "shadowed rules": lambda: rules(
        [f"allow connect to 10.0.{at // 250}.{at % 250}" for at in range(1200)]
        + [f"deny connect to 10.0.{at // 250}.{at % 250}, 10.0.0.0/8" for at in range(1200)]
    ),
    "shadowed places": lambda: rules(
        [f"allow delete under /srv/{at}" for at in range(1200)]
        + [f"deny delete under /srv/{at}, /srv" for at in range(1200)]
    ),
    "places beside places": lambda: rules(
        [f"allow delete at /srv/*/{at}/**" for at in range(1000)]
        + [f"deny delete at /srv/*/x{at}/**" for at in range(1000)]
    ),
    "names beside names": lambda: rules(
        [f"allow connect to n{at}.example:443" for at in range(1200)]
        + [f"deny connect to m{at}.example:443" for at in range(1200)]
    ),
    "a chain of sets": lambda: _set_chain(4000, "@s{0}"),
    "sets that double": lambda: _set_chain(60, "@s{0}, @s{0}"),
    "sets in a circle": lambda: flow(
        "  sets:\n" + "".join(f"    s{at}: '@s{(at + 1) % 3000}'\n" for at in range(3000))
    ),
    "a set at many ports": lambda: flow(
        f"  sets:\n    s: {_many_members(3500)}\n  rules:\n    r: allow connect to "
        + ", ".join(f"@s:{at}" for at in range(1, 9000, 2))
        + "\n"
    ),
    "a set in many rules": lambda: flow(
        f"  sets:\n    s: {_many_members(3500)}\n  rules:\n"
        + "".join(f"    r.{at}: 'deny connect to @s'\n" for at in range(1800))
    ),
    "unknown sets": lambda: rules([f"allow connect to @s{at}" for at in range(3000)]),
    "stars": lambda: one("deny delete at " + "/**" * (SIZE // 3)),
    "stars against stars": lambda: rules(
        ["deny delete at " + "/**/a" * 40 + "/**", "allow delete at " + "/**/a" * 40 + "/b"]
    ),
    "stars in one component": lambda: rules(
        ["deny delete at /" + "*a" * 40, "allow delete at /" + "a*" * 40 + "b"]
    ),
    "stars in exceptions": lambda: one(
        "deny delete at /" + "*a" * 300 + " except at /" + "*a" * 299 + "*b"
    ),
}
