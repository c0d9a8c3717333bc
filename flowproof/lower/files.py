"""Rules about files → the rows by which a run counts attempts at files; nothing is refused by them."""

from __future__ import annotations

from flowproof.artifact.files import FileRow, PathSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.ir.model import Policy, Rule
    from flowproof.ir.places import Places

__all__ = ["file_rows", "observed"]


def observed(rule: Rule) -> bool:
    """Tell whether *rule* is about files and needs no more than to see what is attempted."""
    return rule.action == "files" and rule.verb in ("observe", "expect no")


def file_rows(policy: Policy) -> tuple[FileRow, ...]:
    """Return the row of each rule that is observed, and of each `allow` that ``anywhere else`` leaves out."""
    return tuple(_rows(policy))


def _rows(policy: Policy) -> Iterator[FileRow]:
    otherwise = {
        operation
        for rule in policy.rules
        if observed(rule) and rule.places is not None and rule.places.otherwise
        for operation in rule.operations
    }
    for at, rule in enumerate(policy.rules):
        allowed = rule.action == "files" and rule.verb == "allow"
        if not observed(rule) and not (allowed and otherwise & set(rule.operations)):
            continue
        assert rule.places is not None
        excepted = rule.excepted_places
        yield FileRow(
            rule=at,
            operations=rule.operations,
            otherwise=rule.places.otherwise,
            inside=_paths(rule.places),
            excepted=None if excepted is None else _paths(excepted),
        )


def _paths(places: Places) -> PathSet:
    return PathSet(places.kind, tuple(sorted(set(places.paths))))
