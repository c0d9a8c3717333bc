"""From the tree back to a sentence: the one spelling of what it says."""

from __future__ import annotations

import re

from flowproof.addresses import format_address, parse_address
from flowproof.syntax.tables import TABLES
from flowproof.syntax.tree import (
    Address,
    AddressClass,
    Anything,
    Call,
    Cidr,
    Connect,
    Execute,
    Files,
    Listen,
    Name,
    SetReference,
    Unix,
    Variable,
    Wildcard,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.syntax.tree import Action, Destination, Host, PortRange, Sentence, Where

__all__ = ["render", "render_destination"]

_BARE = re.compile(r'(?:\$\{[A-Za-z_][A-Za-z0-9_]*\})?[^ \t\r\n,"{}\[\]?]*')


def render(sentence: Sentence) -> str:
    """Return the canonical sentence; parsing it gives the same tree up to spans."""
    reason = "" if sentence.reason is None else f" because {_quote(sentence.reason)}"
    return f"{sentence.verb} {_action(sentence.action)}{reason}"


def render_destination(destination: Destination) -> str:
    """Return the canonical text of one destination."""
    ports = destination.ports.ranges if destination.ports else ()
    host = _host(destination.host, bool(ports))
    if not ports:
        return host
    listed = [_port(port) for port in ports]
    return f"{host}:{listed[0]}" if len(listed) == 1 else f"{host}:{{{','.join(listed)}}}"


def _action(action: Action) -> str:
    match action:
        case Connect():
            protocols = f" {', '.join(action.protocols)}" if action.protocols else ""
            return f"connect{protocols} to {_list(action.destinations)}{_except(action.exceptions)}"
        case Listen():
            on = f" on {_list(action.destinations)}"
            if on == " on anything":
                on = ""
            return f"listen{on}{_except(action.exceptions)}"
        case Files():
            operations = ", ".join(name for name, _span in action.operations)
            rest = f" except {_where(action.exceptions)}" if action.exceptions else ""
            return f"{operations} {_where(action.where)}{rest}"
        case Execute():
            return f"execute {_where(action.where)}"
        case Call():
            return f"call {', '.join(_word(tool.text) for tool in action.tools)}"


def _list(destinations: tuple[Destination, ...]) -> str:
    return ", ".join([render_destination(each) for each in destinations])


def _except(destinations: tuple[Destination, ...]) -> str:
    return f" except {_list(destinations)}" if destinations else ""


def _host(host: Host, ported: bool) -> str:
    match host:
        case Name():
            # one label, a keyword among them, is a name in quotes only
            return host.name if "." in host.name else f'"{host.name}"'
        case Wildcard():
            return f"*.{host.name}"
        case Address():
            return _six(format_address(host.family, host.value), ported)
        case Cidr():
            return _six(f"{format_address(host.family, host.base)}/{host.prefix}", ported)
        case AddressClass():
            return host.word
        case Variable():
            return f"${{{host.name}}}"
        case SetReference():
            return f"@{host.name}"
        case Anything():
            return "anything else" if host.otherwise else "anything"
        case Unix():
            return f"unix:{_word(host.path)}"


def _six(text: str, ported: bool) -> str:
    """Return an address or network, in brackets where a port follows or its end reads as one."""
    if ":" not in text:
        return text
    head, _, last = text.rpartition(":")
    return f"[{text}]" if ported or (last.isdigit() and parse_address(head)) else text


def _port(port: PortRange) -> str:
    return str(port.low) if port.low == port.high else f"{port.low}-{port.high}"


def _where(where: Where) -> str:
    if where.kind == "anywhere":
        return "anywhere else" if where.otherwise else "anywhere"
    return f"{where.kind} {', '.join(_word(path.text) for path in where.paths)}"


def _word(text: str) -> str:
    """Return *text* as it stands, or in quotes where it would not be one word, or would be a keyword."""
    return text if _BARE.fullmatch(text) and text not in TABLES.keywords else _quote(text)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
