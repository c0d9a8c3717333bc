"""From reductions of the grammar to nodes of the tree, with every destination and path validated."""

from __future__ import annotations

import re

from flowproof.diagnostics import Span
from flowproof.syntax import hosts, paths
from flowproof.syntax.driver import Token
from flowproof.syntax.port_ranges import ports
from flowproof.syntax.tree import (
    AddressClass,
    Anything,
    Call,
    Connect,
    Destination,
    Execute,
    Files,
    Glob,
    Listen,
    Name,
    Ports,
    Sentence,
    Unix,
    Where,
    Wildcard,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from flowproof.diagnostics import Report
    from flowproof.source.documents import Text
    from flowproof.syntax.tree import PortRange

__all__ = ["Builder", "unescape"]

# Parts of a sentence that no node keeps the place of
_PLACELESS = {"destinations", "exceptions", "protocols", "operations", "paths", "verb", "reason"}
_TOOL = re.compile(r"[A-Za-z0-9_.*-]+")


def unescape(literal: str) -> str:
    r"""Return what a double-quoted string holds: ``\"`` and ``\\`` are its escapes."""
    return re.sub(r"\\(.)", r"\1", literal[1:-1], flags=re.DOTALL)


class Builder:
    """Builds nodes for one sentence. A child that was refused is None, and its error is reported."""

    __slots__ = ("_offsets", "_report", "_source", "_whole")

    def __init__(self, text: Text, report: Report) -> None:
        self._whole = text.span
        self._source, self._offsets = text.span.source, text.offsets
        self._report = report

    def __call__(self, rule: str, start: int, end: int, children: list[Any]) -> Any:  # noqa: ANN401  nodes of any kind
        """Return the node of a reduction of *rule* over ``value[start:end]``."""
        build, placed = _BUILDS[rule]
        if not placed:
            return build(self, self._whole, children)
        first = self._offsets[start]  # as in `place`, for every node of every sentence
        last = self._offsets[end - 1] + 1 if end > start else first
        return build(self, Span(self._source, first, last), children)

    def place(self, start: int, end: int) -> Span:
        """Return the place of ``value[start:end]``, as `Text.at` has it."""
        first = self._offsets[start]
        last = self._offsets[end - 1] + 1 if end > start else first
        return Span(self._source, first, last)

    # hosts and ports

    def _word(self, span: Span, children: list[Any]) -> Any:  # noqa: ANN401
        return hosts.word(children[0].text, span, self._report)

    def _quoted(self, span: Span, children: list[Any]) -> Any:  # noqa: ANN401
        return hosts.quoted(unescape(children[0].text), span, self._report)

    def _bracketed(self, span: Span, children: list[Any]) -> Any:  # noqa: ANN401
        return hosts.bracketed(children[0].text, span, self._report)

    def _class(self, span: Span, children: list[Any]) -> AddressClass:
        return AddressClass(children[0].text, span)

    def _anything(self, span: Span, children: list[Any]) -> Anything:
        return Anything(len(children) == 2, span)

    def _unix(self, span: Span, children: list[Any]) -> Unix | None:
        text = children[0].text.removeprefix("unix:")
        if text[0] == '"':
            text = unescape(text)
        path = paths.unix(text, span, self._report)
        return None if path is None else Unix(path, span)

    def _port(self, span: Span, children: list[Any]) -> PortRange | None:
        return ports(children[0].text, span, self._report)

    def _ports(self, span: Span, children: list[Any]) -> Ports | None:
        token = children[0]
        if isinstance(token, Token):  # `:443`; in braces each port was built by itself
            span = self.place(token.start + 1, token.end)
            children = [ports(token.text[1:], span, self._report)]
        else:
            span = span.source.span(span.start + 1, span.end)
        return None if _lacks(children) else Ports(tuple(children), span)

    def _destination(self, span: Span, children: list[Any]) -> Destination | None:
        if len(children) == 2 and isinstance(children[0], Unix):
            self._report.error(
                "FP310",
                f"a unix path takes no port, and `{span.text}` has one",
                span,
                "put a path that holds a colon wholly inside the quotes",
            )
            return None
        if _lacks(children):
            return None
        return Destination(children[0], children[1] if len(children) == 2 else None, span)

    # `destinations` and `exceptions` stay apart by the class of list that they are

    def _destinations(self, _span: Span, children: list[Any]) -> _Targets:
        return _Targets(children)

    def _exceptions(self, _span: Span, children: list[Any]) -> _Exceptions:
        return _Exceptions(children[0])

    def _protocols(self, _span: Span, children: list[Any]) -> _Protocols:
        return _Protocols([token for token in children if token.type != "COMMA"])

    # actions

    def _connect(self, span: Span, children: list[Any]) -> Connect | None:
        protocols = _one(children, _Protocols)
        targets, exceptions = _one(children, _Targets), _one(children, _Exceptions)
        if protocols:
            for node in (*targets, *exceptions):
                if node is not None and isinstance(node.host, Unix):
                    self._report.error(
                        "FP310",
                        f"`{node.span.text}` is a unix path, and those take no protocol",
                        node.span,
                        "name it in a rule of its own, without `tcp` and `udp`",
                    )
                    return None
        if _lacks(targets) or _lacks(exceptions):
            return None
        words = tuple([token.text for token in protocols])
        return Connect(words, tuple(targets), tuple(exceptions), span)

    def _listen(self, span: Span, children: list[Any]) -> Listen | None:
        targets, exceptions = _one(children, _Targets), _one(children, _Exceptions)
        wrong = False
        for node in (*targets, *exceptions):
            if node is None or isinstance(node.host, (Name, Wildcard, Unix)):
                wrong = True
            if node is not None and wrong and isinstance(node.host, (Name, Wildcard, Unix)):
                kind = "unix path" if isinstance(node.host, Unix) else "name"
                self._report.error(
                    "FP310",
                    f"`{node.span.text}` is a {kind}, and `listen` takes none",
                    node.span,
                    "name the address, or `anything`",
                )
        if wrong:
            return None
        if not targets:
            word = span.source.span(span.start, span.start + len("listen"))
            targets = [Destination(Anything(False, word), None, word)]
        return Listen(tuple(targets), tuple(exceptions), span)

    def _operation(self, span: Span, children: list[Any]) -> tuple[str, Span]:
        return children[0].text, span

    def _operations(self, _span: Span, children: list[Any]) -> tuple[tuple[str, Span], ...]:
        return tuple(children)

    def _files(self, span: Span, children: list[Any]) -> Files | None:
        exceptions = children[2] if len(children) == 3 else None
        if children[1] is None or (len(children) == 3 and exceptions is None):
            return None
        return Files(children[0], children[1], exceptions, span)

    def _execute(self, span: Span, children: list[Any]) -> Execute | None:
        return None if children[0] is None else Execute(children[0], span)

    def _call(self, span: Span, children: list[Any]) -> Call | None:
        return None if _lacks(children) else Call(tuple(children), span)

    def _tool(self, span: Span, children: list[Any]) -> Glob | None:
        text = children[0].text
        text = unescape(text) if text[0] == '"' else text
        if not _TOOL.fullmatch(text):
            self._report.error(
                "FP309",
                f"`{span.text}` is no tool",
                span,
                "a tool is letters, digits, `_`, `.` and `-`, with `*` for any run of them",
            )
            return None
        return Glob(text, span)

    # places of file operations

    def _path(self, span: Span, children: list[Any]) -> Glob | None:
        text = "".join(token.text for token in children)
        text = unescape(text) if text[0] == '"' else text
        path = paths.normalise(text, span, self._report)
        return None if path is None else Glob(path, span)

    def _paths(self, _span: Span, children: list[Any]) -> list[Glob | None]:
        return children

    def _under(self, span: Span, children: list[Any]) -> Where | None:
        for path in children[0]:
            if path is not None and "*" in path.text:
                self._report.warning(
                    "FP308",
                    f"`*` in `{path.span.text}` is an ordinary character behind `under`",
                    path.span,
                    "a pattern stands behind `at`, where `**` is any number of folders",
                )
        return self._where("under", span, children[0])

    def _at(self, span: Span, children: list[Any]) -> Where | None:
        return self._where("at", span, children[0])

    def _where(self, kind: str, span: Span, found: list[Any]) -> Where | None:
        return None if _lacks(found) else Where(kind, tuple(found), False, span)

    def _anywhere(self, span: Span, _children: list[Any]) -> Where:
        return Where("anywhere", (), False, span)

    def _anywhere_else(self, span: Span, _children: list[Any]) -> Where:
        return Where("anywhere", (), True, span)

    def _where_exceptions(self, _span: Span, children: list[Any]) -> Where | None:
        where: Where | None = children[0]
        return where

    # the sentence

    def _verb(self, _span: Span, children: list[Any]) -> str:
        return " ".join([token.text for token in children])

    def _reason(self, _span: Span, children: list[Any]) -> str:
        return unescape(children[0].text)

    def _sentence(self, span: Span, children: list[Any]) -> Sentence | None:
        if children[1] is None:
            return None
        return Sentence(children[0], children[1], children[2] if len(children) == 3 else None, span)


# By the names that the grammar gives its productions: how to build a node, and whether it has a place
_BUILDS: dict[str, tuple[Callable[[Builder, Span, list[Any]], Any], bool]] = {
    name[1:]: (build, name[1:] not in _PLACELESS)
    for name, build in vars(Builder).items()
    if name[0] == "_" != name[1] and callable(build)
}


class _Targets(list["Destination | None"]):
    pass


class _Exceptions(list["Destination | None"]):
    pass


class _Protocols(list["Any"]):
    pass


def _lacks(nodes: Iterable[Any]) -> bool:
    """Tell whether a child was refused; `in` would ask each node for equality."""
    for node in nodes:  # noqa: SIM110  a generator costs more than the list is long
        if node is None:
            return True
    return False


def _one(children: list[Any], kind: type[list[Any]]) -> list[Any]:
    for child in children:
        if type(child) is kind:
            return child
    return []
