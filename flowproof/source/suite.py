"""A path as the user gives it to flows and the packs that they reach."""

from __future__ import annotations

import os
from hashlib import sha256

from flowproof.near import near_miss
from flowproof.plain_files import read_plain
from flowproof.source import flow as flows
from flowproof.source import pack as packs
from flowproof.source.decode import LIMIT
from flowproof.source.yaml_nodes import load as load_yaml
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span
    from flowproof.source.documents import Flow, Pack, Text

__all__ = ["LoadedFlow", "LoadedPack", "Suite", "load"]


DEPTH = 64
"""How deep packs may use each other."""
LONGEST = 4096
"""The longest path that Linux takes (PATH_MAX in <linux/limits.h>)."""


class LoadedFlow(Value):
    """A flow and the packs that it reaches, in the order of first use, each once."""

    flow: Flow
    packs: tuple[Pack, ...]


class LoadedPack(Value):
    """A pack that was asked for by itself, and the packs that it reaches in turn."""

    pack: Pack
    packs: tuple[Pack, ...]


class Suite(Value):
    """What a path holds: the flows of a file or a folder, by path, or one pack."""

    flows: tuple[LoadedFlow, ...]
    packs: tuple[LoadedPack, ...]


def load(path: str, report: Report) -> Suite | None:
    """Return the suite at *path*, or None where nothing of it can be read.

    With errors in *report* it holds what could be read. A folder may hold no flow: that is for the
    caller to say. Names in messages are *path* as given, and what it leads to.
    """
    loader = _Loader(report)
    if os.path.isdir(path):
        found = (loader.flow(name) for name in _flows_below(path, report))
        return Suite(tuple(flow for flow in found if flow is not None), ())
    if path.endswith(packs.SUFFIX):
        pack = loader.pack(path, None)
        if pack is None:
            return None
        return Suite((), (LoadedPack(pack, loader.reached(pack, (path,))),))
    if path.endswith(flows.SUFFIX):
        flow = loader.flow(path)
        return None if flow is None else Suite((flow,), ())
    if not os.path.exists(path):
        report.error("FP230", f"`{path}` is not there", None, "name a flow, a pack or a folder")
    else:
        report.error(
            "FP232",
            f"`{path}` is neither a flow nor a pack",
            None,
            "a flow is named `*.flow.yaml`, a pack `*.policy.yaml`",
        )
    return None


def _flows_below(folder: str, report: Report) -> list[str]:
    """Return the flow files of a folder and its subfolders, hidden ones not, sorted by path."""
    found = []

    def unreadable(error: OSError) -> None:
        report.error("FP230", f"`{error.filename}` cannot be read: {_why(error)}", None)

    for parent, names, files in os.walk(folder, onerror=unreadable):
        names[:] = [name for name in names if name[0] != "."]
        found += [
            os.path.join(parent, name)
            for name in files
            if name.endswith(flows.SUFFIX) and name[0] != "."
        ]
    return sorted(found, key=lambda path: path.split(os.sep))


class _Loader:
    """Reads each file once, follows `uses:`, and names circles once."""

    __slots__ = ("_circles", "_packs", "_reals", "_report")

    def __init__(self, report: Report) -> None:
        self._report = report
        self._packs: dict[str, Pack | None] = {}  # by real path
        self._reals: dict[str, str] = {}  # real paths by path
        self._circles: set[frozenset[str]] = set()

    def flow(self, path: str) -> LoadedFlow | None:
        data = self._bytes(path, None)
        loaded = None if data is None else load_yaml(data, path, self._report)
        if data is None or loaded is None:
            return None
        flow = flows.read_flow(*loaded, path, _digest(data), self._report)
        if flow is None:
            return None
        uses = flow.control.uses if flow.control else ()
        return LoadedFlow(flow, self._follow(uses, path, (), {}))

    def pack(self, path: str, at: Span | None) -> Pack | None:
        """Return the pack at *path*, read once; *at* is the `uses:` entry that names it."""
        real = os.path.realpath(path)
        if real not in self._packs:
            data = self._bytes(path, at)
            loaded = None if data is None else load_yaml(data, path, self._report)
            self._packs[real] = (
                None
                if data is None or loaded is None
                else packs.read_pack(*loaded, path, _digest(data), self._report)
            )
            return self._packs[real]
        known = self._packs[real]
        if known is None and at is not None and not os.path.isfile(path):
            self._bytes(path, at)  # each entry that names a missing file is told so
        return known

    def reached(self, pack: Pack, trail: tuple[str, ...]) -> tuple[Pack, ...]:
        """Return the packs that *pack* reaches, not itself, in the order of first use."""
        return self._follow(pack.uses, pack.path, trail, {})

    def _follow(
        self, uses: tuple[Text, ...], user: str, trail: tuple[str, ...], found: dict[str, Pack]
    ) -> tuple[Pack, ...]:
        for entry in uses:
            path = os.path.normpath(os.path.join(os.path.dirname(user), entry.value))
            if not self._is_pack(entry, path, user):
                continue
            real = os.path.realpath(path)
            reals = [self._real(name) for name in trail]
            if real in reals:
                self._circle((*trail[reals.index(real) :], path), entry)
                continue
            if len(trail) >= DEPTH:
                self._report.error(
                    "FP231",
                    f"packs use each other more than {DEPTH} deep here",
                    entry.span,
                    "use the packs that are meant from the flow itself",
                )
                continue
            pack = self.pack(path, entry.span)
            if pack is not None and real not in found:
                found[real] = pack
                self._follow(pack.uses, pack.path, (*trail, path), found)
        return tuple(found.values())

    def _real(self, path: str) -> str:
        if path not in self._reals:
            self._reals[path] = os.path.realpath(path)
        return self._reals[path]

    def _is_pack(self, entry: Text, path: str, user: str) -> bool:
        if path.endswith(packs.SUFFIX) and "\0" not in path and len(path) <= LONGEST:
            return True
        if len(path) > LONGEST:
            self._report.error(
                "FP232",
                f"a path of {len(path)} characters is no pack: {LONGEST} is the most",
                entry.span,
                "name the pack by a shorter path",
            )
            return False
        way = "a pack is a file `*.policy.yaml`; `flowproof packs --path` says where those that ship lie"
        near = near_miss(os.path.basename(path), _packs_beside(user))
        self._report.error(
            "FP232",
            f"`{entry.value}` is no pack",
            entry.span,
            f"did you mean `{near}`?" if near else way,
        )
        return False

    def _circle(self, chain: tuple[str, ...], entry: Text) -> None:
        members = frozenset(os.path.realpath(name) for name in chain)
        if members in self._circles:
            return
        self._circles.add(members)
        shown = " → ".join(f"`{name}`" for name in chain)
        message = "a pack uses itself" if len(members) == 1 else "packs use each other in a circle"
        self._report.error("FP231", f"{message}: {shown}", entry.span, "take one `uses:` entry out")

    def _bytes(self, path: str, at: Span | None) -> bytes | None:
        try:
            return read_plain(path, LIMIT + 1)
        except OSError as error:
            near = near_miss(os.path.basename(path), _packs_beside(path)) if at else None
            self._report.error(
                "FP230",
                f"`{path}` cannot be read: {_why(error)}",
                at,
                f"did you mean `{near}`?" if near else _where(at),
            )
            return None


def _where(at: Span | None) -> str:
    if at is None:
        return "name a flow, a pack or a folder"
    return "the path of a pack is relative to the file that uses it"


def _packs_beside(path: str) -> list[str]:
    try:
        names = os.listdir(os.path.dirname(path) or ".")
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(packs.SUFFIX))


def _why(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file"
        case IsADirectoryError():
            return "it is a folder"
        case PermissionError():
            return "permission is denied"
        case _:
            return (error.strerror or "the system gives no reason").lower()


def _digest(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()
