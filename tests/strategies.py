"""Hypothesis strategies for sentences and their trees; spans are all empty, at offset 0."""

from __future__ import annotations

from hypothesis import strategies as st

from flowproof.addresses import CLASSES, LAST, canonical
from flowproof.diagnostics import Source, Span
from flowproof.source.documents import Text
from flowproof.syntax import tree
from flowproof.values import Value

NOWHERE = Source("generated", "").span(0)

VERBS = ("allow", "observe", "expect no", "deny", "never")
OPERATIONS = ("delete", "rename", "truncate", "write", "destroy")
_WORD = "abcdefghijklmnopqrstuvwxyz0123456789"


def text_of(value: str, name: str = "x.flow.yaml") -> Text:
    """Return a `Text` that stands alone in its source, as a plain scalar would."""
    source = Source(name, value)
    return Text(value, source.span(0, len(value)), tuple(range(len(value) + 1)))


def bare(node: object) -> object:
    """Return a tree with every span at nowhere, to compare trees by what they say."""
    match node:
        case Span():
            return NOWHERE
        case Value():
            return type(node)(*(bare(getattr(node, field)) for field in node.__fields__))
        case tuple():
            return tuple(bare(item) for item in node)
        case _:
            return node


labels = st.builds(
    lambda first, rest: first + rest,
    st.sampled_from(_WORD + "_"),
    st.text(_WORD + "_", max_size=6),
)
variables = st.from_regex(r"[A-Z_][A-Z0-9_]{0,6}", fullmatch=True)


@st.composite
def names(draw: st.DrawFn, *, wild: bool = False) -> tree.Name | tree.Wildcard:
    """Names as they come out of normalisation: `localhost` is a class, a numeric end no name."""
    parts = draw(st.lists(labels, min_size=1, max_size=3))
    name = ".".join(parts)
    last = parts[-1]
    numeric = last.isdigit() or (
        last[:2] == "0x" and all(c in "0123456789abcdef" for c in last[2:])
    )
    if name == "localhost" or numeric:
        name += ".example"
    return tree.Wildcard(name, NOWHERE) if wild else tree.Name(name, NOWHERE)


@st.composite
def networks(draw: st.DrawFn) -> tree.Address | tree.Cidr:
    """Addresses and networks of both families, in the one form that the tree has for each."""
    family = draw(st.sampled_from((4, 6)))
    width = 32 if family == 4 else 128
    prefix = draw(st.integers(0, width))
    value = draw(st.integers(0, LAST[family]) | st.integers(0, 300))
    value = value >> (width - prefix) << (width - prefix)
    if canonical(family, value)[0] != family:
        family, value = canonical(family, value)
        width, prefix = 32, max(prefix - 96, 0)
        value = value >> (32 - prefix) << (32 - prefix)
    if prefix == width:
        return tree.Address(family, value, NOWHERE)
    return tree.Cidr(family, value, prefix, NOWHERE)


sets = st.builds(tree.SetReference, labels, st.just(NOWHERE))
classes = st.builds(tree.AddressClass, st.sampled_from(sorted(CLASSES)), st.just(NOWHERE))
anythings = st.builds(tree.Anything, st.booleans(), st.just(NOWHERE))

_components = st.text(_WORD + '.:*-_ ,"\\?[]{}éß\u2028', min_size=1, max_size=6).filter(
    lambda part: part not in {".", ".."}
)
_roots = st.sampled_from(("", "~", "${cwd}", "${tmp}", "${HOME}"))


@st.composite
def paths(draw: st.DrawFn) -> str:
    """Normalised paths, with characters that need quotes among them."""
    root = draw(_roots)
    parts = draw(st.lists(_components, max_size=3))
    joined = "/".join(parts)
    return f"{root}/{joined}" if joined else root or "/"


unix = st.builds(
    tree.Unix,
    paths().filter(lambda p: "*" not in p)
    | st.text(_WORD + " ,", min_size=1).map(lambda t: f"@{t}"),
    st.just(NOWHERE),
)
ranges = st.builds(
    lambda a, b: tree.PortRange(min(a, b), max(a, b), NOWHERE),
    st.integers(1, 65535),
    st.integers(1, 65535),
)
ports = st.none() | st.lists(ranges, min_size=1, max_size=3).map(
    lambda found: tree.Ports(tuple(found), NOWHERE)
)


def destinations(
    *, named: bool = True, sockets: bool = True
) -> st.SearchStrategy[tree.Destination]:
    """Destinations of a sentence; without names or without unix paths where a rule takes none."""
    hosts: st.SearchStrategy[tree.Host] = st.one_of(
        networks(), classes, st.builds(tree.Variable, variables, st.just(NOWHERE)), sets, anythings
    )
    if named:
        hosts = st.one_of(hosts, names(), names(wild=True))
    ported = st.builds(tree.Destination, hosts, ports, st.just(NOWHERE))
    if not sockets:
        return ported
    return ported | st.builds(tree.Destination, unix, st.none(), st.just(NOWHERE))


def _some(
    each: st.SearchStrategy[tree.Destination], least: int
) -> st.SearchStrategy[tuple[tree.Destination, ...]]:
    return st.lists(each, min_size=least, max_size=3).map(tuple)


@st.composite
def connects(draw: st.DrawFn) -> tree.Connect:
    """Connect actions; unix paths only without protocols."""
    protocols = draw(st.sampled_from(((), ("tcp",), ("udp",), ("tcp", "udp"))))
    each = destinations(sockets=not protocols)
    return tree.Connect(protocols, draw(_some(each, 1)), draw(_some(each, 0)), NOWHERE)


@st.composite
def listens(draw: st.DrawFn) -> tree.Listen:
    """Listen actions: no names, no unix paths."""
    each = destinations(named=False, sockets=False)
    return tree.Listen(draw(_some(each, 1)), draw(_some(each, 0)), NOWHERE)


globs = st.builds(tree.Glob, paths(), st.just(NOWHERE))
wheres = st.one_of(
    st.builds(
        tree.Where,
        st.sampled_from(("under", "at")),
        st.lists(globs, min_size=1, max_size=3).map(tuple),
        st.just(False),
        st.just(NOWHERE),
    ),
    st.builds(tree.Where, st.just("anywhere"), st.just(()), st.booleans(), st.just(NOWHERE)),
)
files = st.builds(
    tree.Files,
    st.lists(st.tuples(st.sampled_from(OPERATIONS), st.just(NOWHERE)), min_size=1, max_size=3).map(
        tuple
    ),
    wheres,
    st.none() | wheres,
    st.just(NOWHERE),
)
tools = st.builds(tree.Glob, st.text(_WORD + "_.-*", min_size=1, max_size=8), st.just(NOWHERE))
calls = st.builds(tree.Call, st.lists(tools, min_size=1, max_size=3).map(tuple), st.just(NOWHERE))
actions = st.one_of(
    connects(), listens(), files, st.builds(tree.Execute, wheres, st.just(NOWHERE)), calls
)
sentences = st.builds(
    tree.Sentence,
    st.sampled_from(VERBS),
    actions,
    st.none() | st.text(max_size=20).filter(lambda t: t.isprintable() or "\n" in t),
    st.just(NOWHERE),
)
