"""Generate ``flowproof/lower/seccomp/numbers.py`` from the kernel's headers, or check it with --check.

Debian's ``linux-libc-dev`` carries all of them: the x86_64 numbers in ``asm/unistd_64.h``, and those of
aarch64 in ``asm-generic/unistd.h``, which every architecture without a table of its own shares. Socket
families and types stand in the C library's ``bits/socket.h`` and ``bits/socket_type.h``.

--check compares the file with the headers of this machine: the whole text where they are of the release
that the file states, and otherwise each number (a newer kernel adds calls; it never renumbers one).
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "flowproof" / "lower" / "seccomp" / "numbers.py"
INCLUDE = Path("/usr/include")
MULTIARCH = INCLUDE / "x86_64-linux-gnu"

# What arch/arm64/include/uapi/asm/unistd.h defines before it includes asm-generic/unistd.h, and what
# the compiler says of a 64-bit target.
AARCH64 = {
    "__ARCH_WANT_RENAMEAT": 1,
    "__ARCH_WANT_NEW_STAT": 1,
    "__ARCH_WANT_SET_GET_RLIMIT": 1,
    "__ARCH_WANT_TIME32_SYSCALLS": 1,
    "__ARCH_WANT_SYS_CLONE3": 1,
    "__ARCH_WANT_MEMFD_SECRET": 1,
    "__BITS_PER_LONG": 64,
}

# (header, its macros that the file carries)
MACROS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "linux/bpf_common.h",
        tuple(
            f"BPF_{name}"
            for name in [
                "LD",
                "LDX",
                "ST",
                "STX",
                "ALU",
                "JMP",
                "RET",
                "MISC",
                "W",
                "H",
                "B",
                "IMM",
                "ABS",
                "IND",
                "MEM",
                "LEN",
                "MSH",
                "ADD",
                "SUB",
                "MUL",
                "DIV",
                "OR",
                "AND",
                "LSH",
                "RSH",
                "NEG",
                "MOD",
                "XOR",
                "JA",
                "JEQ",
                "JGT",
                "JGE",
                "JSET",
                "K",
                "X",
                "MAXINSNS",
            ]
        ),
    ),
    ("linux/filter.h", ("BPF_A", "BPF_TAX", "BPF_TXA", "BPF_MEMWORDS")),
    (
        "linux/seccomp.h",
        tuple(
            f"SECCOMP_RET_{name}"
            for name in [
                "KILL_PROCESS",
                "KILL_THREAD",
                "TRAP",
                "ERRNO",
                "USER_NOTIF",
                "TRACE",
                "LOG",
                "ALLOW",
                "ACTION_FULL",
                "DATA",
            ]
        ),
    ),
    (
        "linux/audit.h",
        ("AUDIT_ARCH_X86_64", "AUDIT_ARCH_AARCH64", "AUDIT_ARCH_I386", "AUDIT_ARCH_ARM"),
    ),
    ("asm/unistd.h", ("__X32_SYSCALL_BIT",)),
    ("asm-generic/errno-base.h", ("EPERM",)),
    ("asm-generic/fcntl.h", ("O_ACCMODE", "O_CREAT", "O_TRUNC")),
    ("bits/socket.h", ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK")),
    ("bits/socket_type.h", ("SOCK_STREAM", "SOCK_DGRAM")),
    (
        "linux/in.h",
        ("IPPROTO_IP", "IPPROTO_TCP", "IPPROTO_UDP", "IPPROTO_IPV6", "IP_OPTIONS"),
    ),
    ("linux/in6.h", ("IPV6_2292PKTOPTIONS", "IPV6_FLOWLABEL_MGR", "IPV6_RTHDR")),
    ("linux/netlink.h", ("NETLINK_ROUTE",)),
)


def header(name: str) -> str:
    """Return the text of a header without comments, continued lines joined."""
    for folder in (MULTIARCH, INCLUDE):
        path = folder / name
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).replace("\\\n", " ")
    sys.exit(f"no {name} on this machine: install linux-libc-dev and libc6-dev (x86_64)")


def release() -> str:
    """Return the kernel release that the headers are of."""
    code = value("LINUX_VERSION_CODE", definitions(header("linux/version.h")))
    patch = code & 0xFF
    exact = re.search(r"LINUX_VERSION_SUBLEVEL\s+(\d+)", header("linux/version.h"))
    return f"{code >> 16}.{code >> 8 & 0xFF}.{exact.group(1) if exact else patch}"


def preprocessed(text: str, known: dict[str, int]) -> dict[str, str]:
    """Return the macros that *text* defines when *known* are defined, conditionals followed."""
    found: dict[str, str] = {}
    live = [True]
    taken = [True]
    for line in text.splitlines():
        match = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        if not match:
            continue
        word, rest = match.group(1), match.group(2).strip()
        if word in ("if", "ifdef", "ifndef"):
            if word == "if":
                holds = condition(rest, known, found)
            else:
                holds = (rest in known or rest in found) is (word == "ifdef")
            taken.append(live[-1] and holds)
            live.append(live[-1] and holds)
        elif word == "else":
            live[-1] = live[-2] and not taken[-1]
        elif word == "endif":
            live.pop()
            taken.pop()
        elif word == "define" and live[-1]:
            name, _, body = rest.partition(" ")
            name, _, tail = name.partition("\t")
            found[name] = (tail + " " + body).strip()
    return found


def condition(text: str, known: dict[str, int], found: dict[str, str]) -> bool:
    """Evaluate the few forms of #if that the headers use: defined, !, ==, !=, && and ||."""

    def defined(match: re.Match[str]) -> str:
        return str(match.group(1) in known or match.group(1) in found)

    words = re.sub(r"defined\s*\(\s*(\w+)\s*\)", defined, text)
    words = re.sub(r"\b(__\w+)\b", lambda m: str(known.get(m.group(1), 0)), words)
    words = words.replace("&&", " and ").replace("||", " or ")
    words = re.sub(r"!(?!=)", " not ", words)
    if not re.fullmatch(r"(?:True|False|and|or|not|==|!=|[0-9()\s])+", words):
        sys.exit(f"a condition that this generator does not read: {text}")
    return bool(eval(words, {"__builtins__": {}}))  # only the words that were let through above


def definitions(text: str) -> dict[str, str]:
    """Return every object-like macro of *text*, and the members of its enums, by name."""
    found = {
        name: body.strip()
        for name, body in re.findall(
            r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?!\()[ \t]+(.+)$", text, re.MULTILINE
        )
    }
    found.update(re.findall(r"^\s*(\w+)\s*=\s*(\d+),", text, re.MULTILINE))
    return found


def value(name: str, known: dict[str, str]) -> int:
    """Return the number that *name* stands for, other macros followed."""
    body = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)U?L?\b", r"\1", known[name])
    parts = [part.strip() for part in body.strip("() ").split("|")]
    total = 0
    for part in parts:
        octal = re.fullmatch(r"0[0-7]+", part) is not None
        total |= value(part, known) if part in known else int(part, 8 if octal else 0)
    return total


def x86_64() -> dict[str, int]:
    """Return the system calls of x86_64 by name."""
    found = re.findall(r"#define __NR_(\w+)\s+(\d+)\s*$", header("asm/unistd_64.h"), re.MULTILINE)
    return {name: int(number) for name, number in found}


def aarch64() -> dict[str, int]:
    """Return the system calls of aarch64 by name."""
    macros = preprocessed(header("asm-generic/unistd.h"), dict(AARCH64))
    numbers = {}
    for name, body in macros.items():
        match = re.fullmatch(r"__NR_(\w+)", name)
        if match and match.group(1) not in ("syscalls", "arch_specific_syscall"):
            numbers[match.group(1)] = int(macros.get(body, body))
    return numbers


def generated() -> str:
    """Return the text of the module."""
    elf = definitions(header("linux/elf-em.h"))
    lines = [
        '"""Linux\'s numbers for the seccomp backend, named as in the headers: instructions, what a filter',
        "reads and says, sockets, and the system calls of both architectures.",
        "",
        f"Generated by tools/gen_syscalls.py from the headers of Linux {release()}; do not edit.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        f'HEADERS = "{release()}"',
        '"""The release of the kernel headers that the numbers were read from."""',
        "",
        "# linux/seccomp.h: struct seccomp_data (int nr, __u32 arch, __u64 instruction_pointer, args[6])",
        "SECCOMP_DATA_NR = 0",
        "SECCOMP_DATA_ARCH = 4",
        "SECCOMP_DATA_INSTRUCTION_POINTER = 8",
        "SECCOMP_DATA_ARGS = 16",
        "SECCOMP_DATA_SIZE = 64",
    ]
    for name, macros in MACROS:
        known = {**elf, **definitions(header(name))}
        lines += ["", f"# {name}"]
        for macro in macros:
            number = value(macro, known)
            wide = number > 0xFF or (
                macro.startswith(("SECCOMP_", "BPF_")) and macro != "BPF_MAXINSNS"
            )
            lines.append(f"{macro} = {number:#x}" if wide else f"{macro} = {number}")
    lines += ["", "SYSCALLS: dict[str, dict[str, int]] = {"]
    for arch, source, numbers in (
        ("x86_64", "asm/unistd_64.h", x86_64()),
        ("aarch64", "asm-generic/unistd.h", aarch64()),
    ):
        lines += [f'    "{arch}": {{  # {source}']
        lines += [
            f'        "{name}": {numbers[name]},'
            for name in sorted(numbers, key=numbers.__getitem__)
        ]
        lines += ["    },"]
    lines += ["}", '"""Architecture → system call → number."""', ""]
    return "\n".join(lines)


def check() -> int:
    """Compare the file with the headers; return 0 where they agree, else 1 after saying how not."""
    have = TARGET.read_text(encoding="utf-8")
    want = generated()
    if have == want:
        return 0
    if f'HEADERS = "{release()}"' in have:
        print(f"{TARGET.name} differs from the headers: run tools/gen_syscalls.py", file=sys.stderr)
        return 1
    current, stored = _namespace(want), _namespace(have)
    wrong = [
        f"{name}: {stored[name]} here, {current.get(name)} in the headers"
        for name in sorted(stored)
        if isinstance(stored[name], int) and stored[name] != current.get(name)
    ]
    for arch, numbers in stored["SYSCALLS"].items():  # type: ignore[attr-defined]  # a dict, by generation
        for name, number in numbers.items():
            # A name that these (older) headers lack is no contradiction; another number is.
            if current["SYSCALLS"][arch].get(name, number) != number:  # type: ignore[index]  # as above
                wrong.append(f"{arch} {name}: {number} here, another in the headers")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def _namespace(text: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(text, TARGET.name, "exec"), names)  # our own generated module
    return {
        name: held for name, held in names.items() if name.isupper() or name.startswith("__X32")
    }


def main() -> int:
    """Write the file, or with --check compare it."""
    parser = argparse.ArgumentParser(description="generate the numbers of the seccomp backend")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if parser.parse_args().check:
        return check()
    TARGET.write_text(generated(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
