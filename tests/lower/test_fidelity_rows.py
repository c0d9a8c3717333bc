"""What each target says it carries: rule by rule, both halves, with a reason that names the place."""

from __future__ import annotations

import pytest
from authored import policy

from flowproof.artifact.model import Fidelity
from flowproof.lower.backend import TARGETS, compile_policy, refusals

LINUX, WINDOWS = "linux-x86_64", "windows"


def rows(rules: dict[str, str], target: str) -> dict[str, Fidelity]:
    return {row.subject: row for row in compile_policy(policy(rules), target).fidelity}


def halves(rules: dict[str, str], target: str, subject: str = "r") -> tuple[str | None, str | None]:
    row = rows(rules, target)[subject]
    return row.refusing, row.counting


# sentence → (refusing, counting) on Linux, and on Windows
TABLE: dict[str, tuple[tuple[str | None, str | None], tuple[str | None, str | None]]] = {
    "allow connect to 10.0.0.0/8:443": (("exact", None), ("exact", None)),
    "observe connect to 10.0.0.9": ((None, "exact"), (None, "exact")),
    "expect no connect to anything else": ((None, "exact"), (None, "exact")),
    "deny connect udp to 10.0.0.9:53": (("exact", None), ("exact", None)),
    "never connect to metadata": (("exact", "exact"), ("exact", "exact")),
    "allow connect to api.example.com:443": (("exact", None), ("exact", None)),
    "observe connect to api.example.com": ((None, "exact"), (None, "exact")),
    "deny connect to api.example.com": (("over-permits", None), ("over-permits", None)),
    "never connect to api.example.com": (
        ("over-permits", "over-permits"),
        ("over-permits", "over-permits"),
    ),
    "expect no connect to api.example.com": ((None, "over-permits"), (None, "over-permits")),
    "deny connect to anything else except api.example.com": (
        ("exact", None),
        ("unsupported", None),
    ),
    "allow connect to anything except api.example.com": (
        ("over-permits", None),
        ("unsupported", None),
    ),
    'allow connect to "*.example.com":443'.replace('"', ""): (
        ("unsupported", None),
        ("unsupported", None),
    ),
    "observe connect to *.example.com": ((None, "unsupported"), (None, "unsupported")),
    "never connect to ${TARGET}": (("exact", "exact"), ("exact", "exact")),
    "allow listen on ${BIND}:8080": (("unsupported", None), ("unsupported", None)),
    "allow connect to unix:/run/x.sock": (("exact", None), ("not-applicable", None)),
    "never connect to unix:/run/x.sock": (
        ("exact", "exact"),
        ("not-applicable", "not-applicable"),
    ),
    "deny connect to unix:/run/x.sock, 10.0.0.9": (("exact", None), ("exact", None)),
    "deny listen": (("exact", None), ("exact", None)),
    "never listen on anything:8080": (("exact", "exact"), ("exact", "exact")),
    "allow listen on anything:{80,443}": (("exact", None), ("exact", None)),
    "deny listen on 10.0.0.1:8080": (("exact", None), ("unsupported", None)),
    "deny listen on loopback": (("exact", None), ("unsupported", None)),
    "deny listen on anything except 10.0.0.1": (("exact", None), ("unsupported", None)),
    "deny delete under /srv": (("unsupported", None), ("unsupported", None)),
    "expect no write under /srv": ((None, "observed"), (None, "unsupported")),
    "observe delete at /srv/*.txt": ((None, "observed"), (None, "unsupported")),
    "never delete under /srv": (("unsupported", "unsupported"), ("unsupported", "unsupported")),
    "allow write under /srv": (("unsupported", None), ("unsupported", None)),
    "never execute under /tmp": (("unsupported", "unsupported"), ("unsupported", "unsupported")),
    "deny call shell": (("unsupported", None), ("unsupported", None)),
}


@pytest.mark.parametrize(("sentence", "wanted"), TABLE.items(), ids=TABLE)
def test_a_rule_is_carried_as_the_page_says(
    sentence: str, wanted: tuple[tuple[str | None, str | None], tuple[str | None, str | None]]
) -> None:
    assert (halves({"r": sentence}, LINUX), halves({"r": sentence}, WINDOWS)) == wanted


@pytest.mark.parametrize("sentence", TABLE)
def test_both_linux_targets_carry_the_same(sentence: str) -> None:
    assert rows({"r": sentence}, "linux-x86_64") == rows({"r": sentence}, "linux-aarch64")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sentence", TABLE)
def test_what_is_not_exact_has_a_reason_with_its_place(sentence: str, target: str) -> None:
    for row in rows({"r": sentence}, target).values():
        if row.subject == "r" and {row.refusing, row.counting} - {"exact", None}:
            assert row.reason is not None
            assert "p.policy.yaml:3:" in row.reason


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sentence", TABLE)
def test_no_rule_is_dropped_in_silence(sentence: str, target: str) -> None:
    control = policy({"r": sentence})
    artifact = compile_policy(control, target)
    subjects = [row.subject for row in artifact.fidelity]
    assert [rule.id for rule in control.rules] == [
        subject for subject in subjects if not subject.startswith("meaning:")
    ]
    assert [rule.id for rule in artifact.rules] == [rule.id for rule in control.rules]


def test_what_stops_a_compile_is_told() -> None:
    stopping = compile_policy(
        policy({"ads": "deny connect to ads.example.com", "ok": "deny connect to 10.0.0.9"}), LINUX
    )
    assert [row.subject for row in refusals(stopping)] == ["ads"]
    assert refusals(compile_policy(policy({"ok": "deny connect to 10.0.0.9"}), LINUX)) == ()


def test_fixed_meanings_in_force_have_their_rows() -> None:
    denying = {"r": "deny connect to 10.0.0.9"}
    linux = rows(denying, LINUX)
    for meaning in ("families", "foreign-abi", "unix", "unreadable", "listen", "loopback"):
        row = linux[f"meaning:{meaning}"]
        assert (row.refusing, row.counting) == ("exact", "exact")
    assert linux["meaning:io-uring"].counting is None
    observing = rows({"r": "observe connect to anything"}, LINUX)
    families = observing["meaning:families"]
    assert (families.refusing, families.counting) == (None, "exact")
    narrow = rows({"r": "observe connect to 10.0.0.9"}, LINUX)["meaning:families"]
    assert (narrow.refusing, narrow.counting) == (None, None)
    assert "not counted by itself" in str(narrow.reason)
    assert "meaning:listen" not in observing
    assert not [s for s in rows({}, LINUX) if s.startswith("meaning:")]
    about_files = rows({"r": "expect no delete under /srv"}, LINUX)
    assert {s for s in about_files if s.startswith("meaning:")} == {
        "meaning:foreign-abi",
        "meaning:io-uring",
    }
    uncarried = rows({"r": "deny delete under /srv"}, LINUX)  # nothing is trapped for it
    assert not [s for s in uncarried if s.startswith("meaning:")]


def test_windows_states_what_differs() -> None:
    windows = rows({"r": "deny connect to 10.0.0.9"}, WINDOWS)
    assert windows["meaning:families"].refusing == "not-applicable"
    assert "raw sockets are refused by the identity" in str(windows["meaning:families"].reason)
    assert "classified when it sends" in str(windows["meaning:udp-connect"].reason)
    assert windows["meaning:inbound"].refusing == "over-blocks"
    assert windows["p.implied.unix"].refusing == "not-applicable"
    assert windows["p.implied.listen"].refusing == "exact"


def test_a_target_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="linux-x86_64"):
        compile_policy(policy({}), "linux-riscv64")
