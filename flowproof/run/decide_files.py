"""Bound rows and an attempt at a file in, the rules that count or tell it out. Nothing is refused. Pure."""

from __future__ import annotations

from flowproof.artifact.files import OPERATIONS
from flowproof.artifact.model import Decision
from flowproof.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.artifact.files import FileRow, PathSet
    from flowproof.artifact.model import Rule

__all__ = ["FileDecisions"]


_FEW = 64
"""Folders up to which comparing with each is quicker than looking each folder above a path up."""


class _Places:
    """A set of paths."""

    __slots__ = ("_anywhere", "_few", "_folders", "_globs")

    def __init__(self, paths: PathSet) -> None:
        self._anywhere = paths.kind == "anywhere"
        self._folders = frozenset(paths.paths) if paths.kind == "under" else frozenset()
        self._few: tuple[str, ...] | None = None  # the folders with a slash behind each
        if len(self._folders) <= _FEW:
            self._few = tuple(f"{folder.rstrip('/')}/" for folder in self._folders)
        self._globs = paths.paths if paths.kind == "at" else ()

    def holds(self, path: str) -> bool:
        if self._anywhere or path in self._folders:
            return True
        if self._few is None:
            if any(folder in self._folders for folder in _above(path)):
                return True
        elif path.startswith(self._few):
            return True
        return bool(self._globs) and any(matches(glob, path) for glob in self._globs)


def _above(path: str) -> Iterator[str]:
    """Yield every folder above *path*."""
    end = path.rfind("/")
    while end > 0:
        path = path[:end]
        yield path
        end = path.rfind("/")
    yield "/"


class _Row:
    __slots__ = ("excepted", "inside", "operations", "otherwise", "rule")

    def __init__(self, row: FileRow) -> None:
        self.rule = row.rule
        self.operations = frozenset(row.operations)
        self.inside = _Places(row.inside)
        self.excepted = None if row.excepted is None else _Places(row.excepted)
        self.otherwise = row.otherwise

    def holds(self, path: str) -> bool:
        return self.inside.holds(path) and not (
            self.excepted is not None and self.excepted.holds(path)
        )


class FileDecisions:
    """What becomes of an attempt at a file, by the bound *rows* of an artifact with *rules*."""

    __slots__ = ("_allows", "_by_operation", "_rows", "_rules", "_told")

    def __init__(self, rows: tuple[FileRow, ...], rules: tuple[Rule, ...]) -> None:
        own = [_Row(row) for row in rows]
        self._rules = rules
        self._rows = [row for row in own if rules[row.rule].verb != "allow"]
        self._allows = [row for row in own if rules[row.rule].verb == "allow"]
        self._told: dict[tuple[int, ...], Decision] = {}
        # each of the operations is a write: what a rule says of either counts
        self._by_operation = {
            operation: [
                (row, tuple(row.operations & {operation, "write"}))
                for row in self._rows
                if row.operations & {operation, "write"}
            ]
            for operation in OPERATIONS
        }

    def single(self, operation: str, path: str) -> Decision:
        """Return the decision on a delete, truncate or write of *path*."""
        found = [
            row.rule
            for row, words in self._by_operation[operation]
            if row.holds(path)
            and (not row.otherwise or any(self._applies(row, word, path) for word in words))
        ]
        return self._decision(tuple(found))

    def rename(
        self, source: str, target: str, *, replaces: bool, exchange: bool = False
    ) -> Decision:
        """Return the decision on a rename. It deletes what it *replaces*, and what it takes out of a rule's
        places; an *exchange* does that both ways.
        """
        found = [
            row.rule
            for row in self._rows
            if self._renamed(row, source, target, replaces=replaces)
            or (exchange and self._renamed(row, target, source, replaces=False))
        ]
        return self._decision(tuple(found))

    def _renamed(self, row: _Row, source: str, target: str, *, replaces: bool) -> bool:
        if any(
            operation in row.operations and self._applies(row, operation, end)
            for operation in ("rename", "write")
            for end in (source, target)
        ):
            return True
        if "delete" not in row.operations:
            return False
        arrives = self._applies(row, "delete", target)
        return (replaces and arrives) or (not arrives and self._applies(row, "delete", source))

    def _applies(self, row: _Row, operation: str, path: str) -> bool:
        if not row.holds(path):
            return False
        return not row.otherwise or not any(
            operation in allow.operations and allow.holds(path) for allow in self._allows
        )

    def _decision(self, told: tuple[int, ...]) -> Decision:
        known = self._told.get(told)
        if known is None:
            verbs = [(rule, self._rules[rule].verb) for rule in told]
            known = self._told[told] = Decision(
                False,
                None,
                tuple(rule for rule, verb in verbs if verb != "observe"),
                tuple(rule for rule, verb in verbs if verb == "observe"),
            )
        return known
