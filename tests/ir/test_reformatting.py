"""A policy that is only written differently has the digest that it had."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_model import AnyRule, Rule
from random_policies import policy_at, rule_lists

from flowproof.ir.model import Policy
from flowproof.ir.serialize import digest, to_json

HEAD = "name: T\ncontrol:\n  id: c\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reformatting")


def read(folder: Path, text: str) -> Policy | None:
    (folder / "c.flow.yaml").write_bytes(text.encode())
    return policy_at(folder / "c.flow.yaml")[0]


def quoted(sentence: str, style: int) -> str:
    """Return YAML for a sentence: in double or single quotes, folded, literal, or with escapes."""
    spaced = sentence.replace(" ", "  \t") if style == 5 else sentence
    match style:
        case 0:
            return json.dumps(spaced)
        case 1:
            return "'" + spaced.replace("'", "''") + "'"
        case 2:
            return ">-\n      " + spaced.replace(" ", "\n      ")
        case 3:
            return "|\n      " + spaced.replace(" ", "\n        ", 1)
        case 4:
            return '"' + "".join(f"\\u{ord(c):04x}" for c in spaced) + '"'
        case _:
            return json.dumps(spaced)


@settings(deadline=None, max_examples=60)
@given(rule_lists("connect", "listen", "files", most=6), st.randoms(use_true_random=False))
def test_order_quotes_and_styles_leave_the_digest_as_it_is(
    folder: Path, rules: list[AnyRule], choose: random.Random
) -> None:
    plain = read(
        folder, HEAD + "  rules:\n" + "".join(f'    {r.id}: "{r.sentence}"\n' for r in rules)
    )
    shuffled = rules.copy()
    choose.shuffle(shuffled)
    lines = "".join(f"    {r.id}: {quoted(r.sentence, choose.randrange(6))}\n" for r in shuffled)
    styled = read(
        folder, "\ufeff" + ("# moved\n" + HEAD + "  rules:\n" + lines).replace("\n", "\r\n")
    )
    flat = ", ".join(f'"{r.id}": {json.dumps(r.sentence)}' for r in reversed(rules))
    flow = read(folder, f"control: {{rules: {{{flat}}}, 'id': c}}\nname: T\n")
    if plain is None:
        assert styled is None
        assert flow is None
        return
    assert styled is not None
    assert flow is not None
    assert digest(plain) == digest(styled) == digest(flow)


@settings(deadline=None, max_examples=40)
@given(rule_lists("connect", most=4))
def test_a_set_is_what_it_holds(folder: Path, rules: list[AnyRule]) -> None:
    """By a set, by a set of sets, by a list of members, with ports at the reference: one digest."""
    plain = read(
        folder, HEAD + "  rules:\n" + "".join(f'    {r.id}: "{r.sentence}"\n' for r in rules)
    )
    sets, lines = "", ""
    for at, rule in enumerate(rules):
        assert isinstance(rule, Rule)
        members = [target for target in rule.targets if target.host != "anything else"]
        rest = [str(target) for target in rule.targets if target.host == "anything else"]
        sentence = rule.sentence
        if members:
            listed = "".join(f'\n      - "{member}"' for member in members)
            sets += f"    s{at}:{listed}\n    t{at}: '@s{at}, @s{at}'\n"
            written = ", ".join(map(str, rule.targets))
            sentence = sentence.replace(f"to {written}", f"to {', '.join([f'@t{at}', *rest])}", 1)
        lines += f'    {rule.id}: "{sentence}"\n'
    by_set = read(folder, HEAD + ("  sets:\n" + sets if sets else "") + "  rules:\n" + lines)
    assert (plain is None) is (by_set is None)
    if plain is not None and by_set is not None:
        assert digest(plain) == digest(by_set)


def test_the_order_of_targets_paths_operations_and_tools_is_no_meaning(folder: Path) -> None:
    pairs = [
        (
            "deny connect tcp, udp to 10.0.0.1, 10.0.0.2:{80,443}",
            "deny connect to 10.0.0.2:{443,80}, 10.0.0.1",
        ),
        ("deny connect to 10.0.0.0/25, 10.0.0.128/25", "deny connect to 10.0.0.0/24"),
        ("deny delete, rename, truncate under /a, /b", "deny destroy under /b//, /a/."),
        ("deny call b, a, a", "deny call a, b"),
        ("never listen", "never listen on anything"),
        ("allow connect to LOCALHOST", "allow connect to loopback"),
        ("deny delete under x", "deny delete under ${cwd}/./x"),
        ("deny delete under /a, /a", "deny delete under /a"),
    ]
    for left, right in pairs:
        first, second = (read(folder, f"{HEAD}  rules:\n    r: {text}\n") for text in (left, right))
        assert first is not None
        assert second is not None
        assert digest(first) == digest(second), (left, right)


def test_what_means_something_else_has_another_digest(folder: Path) -> None:
    base = "deny connect to 10.0.0.0/24"
    seen = {}
    for sentence in (
        *(base, "never connect to 10.0.0.0/24", "deny connect tcp to 10.0.0.0/24"),
        *("deny connect to 10.0.0.0/25", "deny connect to 10.0.0.0/24:80", f'{base} because "x"'),
        *(
            f"{base} except 10.0.0.1",
            "deny listen on 10.0.0.0/24",
            "deny connect to 10.0.0.0/24, anything else",
        ),
    ):
        policy = read(folder, f"{HEAD}  rules:\n    r: {sentence}\n")
        assert policy is not None
        seen[digest(policy)] = sentence
    assert len(seen) == 9
    other = read(folder, f"{HEAD}  rules:\n    q: {base}\n")
    assert other is not None
    assert digest(other) not in seen
    assert to_json(other)["control"] == "c"
