"""The artifact: a compiled control as plain data, the one thing that a run needs.

It names rules by index into `Artifact.rules`, which is sorted by id: ascending indices are ascending ids.
What only a run can know (names, variables, folders) stays symbolic here and is bound by the runner.
"""

from __future__ import annotations

from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.artifact.files import FileRow

__all__ = [
    "PLANES",
    "SPECIAL",
    "Artifact",
    "Decision",
    "Difference",
    "Entry",
    "Fidelity",
    "FixedReply",
    "Instruction",
    "Origin",
    "Plane",
    "PortTable",
    "Program",
    "RefusedCall",
    "RefusedOption",
    "Rule",
    "Symbol",
    "Tables",
    "TrappedCall",
    "UnixRow",
]

PLANES = (
    "tcp4",
    "tcp6",
    "udp4",
    "udp6",
    "listen4",
    "listen6",
    "listen-any4",
    "listen-any6",
)
"""The planes of the decision tables: an address line each. ``listen-any4`` is a listen on 0.0.0.0 (every
IPv4 address at once), ``listen-any6`` one on ``::``; they have the single address 0."""
SPECIAL = ("families", "foreign-abi", "unreadable", "unix")
"""What has no address, and one decision each."""


class Origin(Value):
    """Where a rule was written. *pack* is the pack's name for a rule that a flow took in."""

    file: str
    line: int
    column: int
    pack: str | None = None


class Rule(Value):
    """A rule as the run and the reports need it.

    *action*: connect, listen, files, execute or call. *verb*: allow, observe, expect no, deny, never.
    *claim*: none, report, behaviour, containment, or containment+behaviour (`never`). *kind*: authored,
    short-form, default or implied. *sentence* is the canonical sentence. How well each half of the rule
    is carried stands in `Fidelity`.
    """

    id: str
    verb: str
    claim: str
    action: str
    kind: str
    sentence: str
    reason: str | None
    origin: Origin | None


class Fidelity(Value):
    """How well the target carries one rule or fixed meaning (`subject`: a rule id or ``meaning:…``).

    *refusing* and *counting* are a class (exact, observed, over-blocks, not-applicable, over-permits,
    unsupported) or None where the rule has no such half.
    """

    subject: str
    refusing: str | None
    counting: str | None
    reason: str | None


class Difference(Value):
    """Where the target does otherwise than the decision tables say, which are what Linux decides by.

    *kind*: over-blocks, over-permits, other-rule (the same is done in the name of another rule),
    not-applicable (not seen) or unsupported (not taken into account). *subject* is the row of `Fidelity`
    that states it, *where* a plane of the tables, or ``unix``, ``binding``, ``counting`` or ``meaning``.
    *policy* and *target* say in words what each does; *cells* are all of the attempts it is about, joined
    where they touch: addresses with ports, paths, names.
    """

    kind: str
    subject: str
    where: str
    rules: tuple[int, ...]
    policy: str
    target: str
    cells: tuple[str, ...]


class Decision(Value):
    """What becomes of one attempt: *refused*, by which rule, and which rules count or observe it."""

    refused: bool
    by: int | None
    asserting: tuple[int, ...]
    observing: tuple[int, ...]


class Entry(Value):
    """The rules that a cell of a table belongs to, each list in order of precedence. Of *refuse*, *allow*,
    *otherwise* and *leave* the first rule decides, and what could never come first is left out.

    *refuse*, *allow*: named refusals and allows. *otherwise*: catch-alls, authored ones first, then the
    default, then implied ones; in force only where *allow* is empty. *leave*: refusals that except this
    unix path, in force behind authored catch-alls. *watch* and *watch_otherwise*: ``never``, ``expect no``
    and ``observe`` rules, named and ``else``; the latter only where *allow* is empty. *excepted*: rules
    whose exceptions cover the cell (binding adds no name to a rule here).
    """

    refuse: tuple[int, ...] = ()
    allow: tuple[int, ...] = ()
    otherwise: tuple[int, ...] = ()
    watch: tuple[int, ...] = ()
    watch_otherwise: tuple[int, ...] = ()
    excepted: tuple[int, ...] = ()
    leave: tuple[int, ...] = ()

    def decide(self, rules: tuple[Rule, ...]) -> Decision:
        """Return the handling that the lists amount to, first list first."""
        watching = self.watch if self.allow else tuple(sorted({*self.watch, *self.watch_otherwise}))
        asserting = tuple(rule for rule in watching if rules[rule].verb != "observe")
        observing = tuple(rule for rule in watching if rules[rule].verb == "observe")
        if self.refuse:
            return Decision(True, self.refuse[0], asserting, observing)
        if self.allow:
            return Decision(False, self.allow[0], asserting, observing)
        authored = tuple(r for r in self.otherwise if rules[r].kind in ("authored", "short-form"))
        if authored:
            return Decision(True, authored[0], asserting, observing)
        if self.leave:
            return Decision(False, self.leave[0], asserting, observing)
        if self.otherwise:
            return Decision(True, self.otherwise[0], asserting, observing)
        return Decision(False, None, asserting, observing)


class PortTable(Value):
    """Ports 0 to 65535 cut into intervals: *starts* ascending from 0, an entry index for each."""

    starts: tuple[int, ...]
    entries: tuple[int, ...]


class Plane(Value):
    """An address line cut into intervals: *starts* ascending from 0, a port-table index for each."""

    starts: tuple[int, ...]
    cells: tuple[int, ...]


class UnixRow(Value):
    """One unix path that some rule names, with its entry for outside and for inside sockets."""

    path: str
    outside: int
    inside: int


class Tables(Value):
    """The supervisor's decision tables. *special* maps families, foreign-abi, unreadable, unix and
    unnamed events to entries: ``families`` (a refused family), ``foreign-abi``, ``unreadable`` (an address
    of no known kind), ``unix`` (an outside unix socket that no rule names). *files* are what is counted of
    attempts at files.
    """

    entries: tuple[Entry, ...]
    ports: tuple[PortTable, ...]
    planes: Mapping[str, Plane]
    special: Mapping[str, int]
    unix: tuple[UnixRow, ...]
    files: tuple[FileRow, ...] = ()


class Symbol(Value):
    """A part of a rule that a run binds to addresses.

    *role* is target or except; *kind* is name, wildcard or variable; *ports* are inclusive ranges, empty
    for any port. Binding a target adds the rule to the lists its verb belongs to (allow → *allow*;
    deny, never → *refuse*; never, expect no, observe → *watch*) in the cells that the addresses cover and
    *excepted* does not hold the rule; binding an exception takes the rule out of every list but *excepted*,
    where it goes, and one of a refusal of `listen` takes implied rules out of *otherwise* too. *key* orders
    the rule within the list by precedence: never before deny, then the smaller id.
    """

    rule: int
    role: str
    kind: str
    value: str
    protocols: tuple[str, ...]
    ports: tuple[tuple[int, int], ...]


class Instruction(Value):
    """One ``struct sock_filter``, with the operation in words and its *causes*: names out of
    `Program.causes`, which hold the rules that made it exist.
    """

    code: int
    jt: int
    jf: int
    k: int
    words: str = ""
    causes: tuple[str, ...] = ()


class TrappedCall(Value):
    """A syscall number whose calls the supervisor decides; *call* names it in the registry of calls."""

    number: int
    call: str


class FixedReply(Value):
    """A notification that no code decides, recorded by the entry *special* of `Tables.special`.

    *event* is foreign-abi, socket or socketpair, *errno* the reply's name; None: the call goes on, where it
    is counted and not refused. *number* is None for foreign-abi, which is told by the audit arch or by an
    x32 number.
    """

    event: str
    number: int | None
    errno: str | None
    special: str


class RefusedCall(Value):
    """A syscall number that the kernel answers with *errno* and nobody counts."""

    number: int
    call: str
    errno: str


class RefusedOption(Value):
    """An option of ``setsockopt`` (*number*) that the kernel answers with *errno* and nobody counts."""

    number: int
    level: int
    option: int
    name: str
    errno: str


class Program(Value):
    """The cBPF program of one architecture. *arch* is the name of the target architecture; *cached* are
    ranges of numbers that the kernel allows without running it, where that was worked out. *causes* are the
    parts of the program by name (connect, listen, families, foreign-abi, io-uring), with the rules that ask
    for each.
    """

    arch: str
    instructions: tuple[Instruction, ...]
    trapped: tuple[TrappedCall, ...]
    fixed: tuple[FixedReply, ...]
    refused: tuple[RefusedCall, ...]
    options: tuple[RefusedOption, ...] = ()
    cached: tuple[tuple[int, int], ...] = ()
    causes: Mapping[str, tuple[int, ...]] = {}


class Artifact(Value):
    """A compiled control for one target.

    *lanes*: the lanes that a run of it engages. *hosts*: names that ``--hosts`` bound at compile time, to
    addresses in text form. *filters* is the WFP filter set as JSON-shaped data (windows targets only).
    *differences* list where a filter set does otherwise than the tables, each with all of its cells; a
    Linux target has none. *verification* says what was proved at compile. *digests* hold ``ir``,
    ``grammar`` and the source files (``file:<name>``), as ``sha256:…``.
    """

    target: str
    control: str
    title: str | None
    rules: tuple[Rule, ...]
    lanes: tuple[str, ...]
    fidelity: tuple[Fidelity, ...]
    tables: Tables
    symbols: tuple[Symbol, ...]
    program: Program | None
    filters: Mapping[str, object] | None
    hosts: Mapping[str, tuple[str, ...]]
    verification: str
    digests: Mapping[str, str]
    tool: str
    differences: tuple[Difference, ...] = ()
