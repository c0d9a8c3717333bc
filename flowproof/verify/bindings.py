"""What binding a name or a variable will find in the lists of an entry, in a normal form.

Only what no binding can bring forward is left out of it: equal normal forms decide alike under every binding.
"""

from __future__ import annotations

from flowproof.verify.holders import EXCEPTED, EXEMPT, IMPLIED, NAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.ir.model import Policy
    from flowproof.verify.found import Counterexample
    from flowproof.verify.reading import Read
    from flowproof.verify.sweep import Member
    from flowproof.verify.telling import Telling

__all__ = ["Bindings"]

_RANK = {"authored": 0, "short-form": 0, "default": 1, "implied": 2}


class Bindings:
    """The lists of the entries of *read*, held against those that *policy* asks for."""

    def __init__(self, policy: Policy, read: Read, telling: Telling) -> None:
        self._policy = policy
        self._read = read
        self._telling = telling

    def difference(
        self, event: str, members: tuple[Member, ...], entry: int, part: str
    ) -> Counterexample | None:
        """Return how the lists of *entry* differ from those that *members* have to be in, or None."""
        held = self._read.entries[entry]
        wanted = self._lists(members)
        named = {at for at, role in members if role == NAMED}
        for name in wanted:
            has = tuple(held.get(name, ()))
            if name == "watch_otherwise":
                has = tuple(sorted(set(has) - set(held.get("watch", ()))))
            elif name == "watch":
                has = tuple(sorted(has))
            elif name == "excepted":
                targeted = {at for at in has if self._policy.rules[at].targets.symbols}
                has = tuple(sorted(targeted - named))
            elif list(has) != sorted(has, key=self._precedence):
                return self._telling.of_list(event, name, has, wanted[name], part)
            else:
                has = self._cut(has)
            if has != wanted[name]:
                return self._telling.of_list(event, name, has, wanted[name], part)
        return None

    def _lists(self, members: tuple[Member, ...]) -> dict[str, tuple[int, ...]]:
        """Return the lists that *members* have to be in, in normal form."""
        lists: dict[str, list[int]] = {
            name: []
            for name in ("refuse", "allow", "otherwise", "watch", "watch_otherwise", "excepted")
        }
        rules = self._policy.rules
        for at, role in members:
            if role in (EXEMPT, IMPLIED):  # what is implied here is told by all members
                continue
            rule = rules[at]
            if role == EXCEPTED:
                if rule.targets.symbols:
                    lists["excepted"].append(at)
                continue
            watches = rule.asserts or rule.verb == "observe"
            if rule.refuses:
                lists["refuse" if role == NAMED else "otherwise"].append(at)
            if rule.verb == "allow":
                lists["allow"].append(at)
            if watches:
                lists["watch" if role == NAMED else "watch_otherwise"].append(at)
        implied = self._implied_listen(members)
        lists["otherwise"] += implied
        watch = set(lists["watch"])
        named = {at for at, role in members if role == NAMED}
        return {
            **{
                name: self._cut(tuple(sorted(lists[name], key=self._precedence)))
                for name in ("refuse", "allow", "otherwise")
            },
            "watch": tuple(sorted(watch)),
            "watch_otherwise": tuple(sorted(set(lists["watch_otherwise"]) - watch)),
            "excepted": tuple(sorted(set(lists["excepted"]) - named)),
        }

    def _implied_listen(self, members: tuple[Member, ...]) -> list[int]:
        rules = self._policy.rules
        if any(role == EXEMPT or (role == EXCEPTED and rules[at].refuses) for at, role in members):
            return []
        return [at for at, role in members if role == IMPLIED]

    def _precedence(self, at: int) -> tuple[int, bool, int]:
        rule = self._policy.rules[at]
        return _RANK[rule.kind], rule.refuses and rule.verb != "never", at

    def _cut(self, held: tuple[int, ...]) -> tuple[int, ...]:
        """Return *held* up to the first rule that no binding takes out: what comes behind never decides."""
        for place, at in enumerate(held):
            if not self._policy.rules[at].exceptions.symbols:
                return held[: place + 1]
        return held
