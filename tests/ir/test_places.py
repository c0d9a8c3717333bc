"""Places hold and cover what the page says, by text."""

from __future__ import annotations

import random

import pytest

from flowproof.globs import _Automaton, glob_pattern
from flowproof.ir.places import Places


@pytest.mark.parametrize(
    ("glob", "inside", "outside"),
    [
        (
            "/srv/*.log",
            ["/srv/a.log", "/srv/.log"],
            ["/srv/a.log.gz", "/srv/x/a.log", "/srv/aXlog"],
        ),
        ("/srv/**/x", ["/srv/x", "/srv/a/x", "/srv/a/b/x"], ["/srvx", "/srv/ax", "/srv/a/xy"]),
        ("/srv/**", ["/srv", "/srv/a", "/srv/a/b"], ["/srvx", "/srvx/y"]),
        ("/srv/**.log", ["/srv/a.log", "/srv/x/y.log"], ["/srv/a.txt"]),
        ("/srv/*/x", ["/srv/a/x"], ["/srv/x", "/srv/a/b/x"]),
        ("/srv/a(b", ["/srv/a(b"], ["/srv/ab"]),
    ],
)
def test_globs_match_components(glob: str, inside: list[str], outside: list[str]) -> None:
    places = Places("at", (glob,))
    assert all(places.holds(path) for path in inside)
    assert not any(places.holds(path) for path in outside)


@pytest.mark.parametrize(
    ("outer", "inner", "covered"),
    [
        (Places("under", ("/srv",)), Places("under", ("/srv/a",)), True),
        (Places("under", ("/srv",)), Places("under", ("/srvx",)), False),
        (Places("under", ("/",)), Places("at", ("/etc/*",)), True),
        (Places("under", ("/srv",)), Places("at", ("/srv/**",)), True),
        (Places("at", ("/srv/*",)), Places("at", ("/srv/*.log",)), True),
        (Places("at", ("/srv/*",)), Places("at", ("/srv/**",)), False),
        (Places("at", ("/srv/*.log",)), Places("at", ("/srv/a.txt",)), False),
        (Places("at", ("/srv/**",)), Places("under", ("/srv/a",)), True),
        (Places("at", ("/srv/*",)), Places("under", ("/srv/a",)), False),
        (Places("at", ("/srv", "/srv/*/*", "/x/**")), Places("under", ("/srv",)), False),
        (Places("under", ("/srv/a",)), Places("at", ("/srv/**",)), False),
        (Places("under", ("/srv/a",)), Places("at", ("/srv/*",)), False),
        (Places("at", ("/srv/*/**",)), Places("at", ("/srv/**",)), False),
        (Places("at", ("/srv/a",)), Places("at", ("/srv/a*",)), False),
        (Places("anywhere"), Places("under", ("/srv",)), True),
        (Places("under", ("/srv",)), Places("anywhere"), False),
    ],
)
def test_inside_is_decided_by_text(outer: Places, inner: Places, covered: bool) -> None:
    assert outer.covers(inner) is covered


def test_overlap_is_of_prefixes() -> None:
    assert Places("under", ("/srv/a",)).overlaps(Places("under", ("/srv",)))
    assert Places("at", ("/srv/*.log",)).overlaps(Places("under", ("/srv/a",)))
    assert not Places("under", ("/srv/a",)).overlaps(Places("under", ("/srv/ab",)))


@pytest.mark.parametrize(
    ("kind", "paths", "otherwise"),
    [
        ("anywhere", ("/srv",), False),
        ("under", (), False),
        ("under", ("/srv",), True),
        ("in", ("/a",), False),
    ],
)
def test_places_that_mean_nothing_are_never_built(
    kind: str, paths: tuple[str, ...], otherwise: bool
) -> None:
    with pytest.raises(ValueError, match=r"places|anywhere"):
        Places(kind, paths, otherwise)


def test_many_stars_are_matched_as_few_are() -> None:
    """The automaton of globs with many stars against the pattern of those with few."""
    choose = random.Random(3)
    parts = ("**", "*", "a", "b*", "*a", "a*b", "ab", "**a")
    held = 0
    for _ in range(4000):
        glob = "/" + "/".join(choose.choice(parts) for _ in range(choose.randint(1, 4)))
        path = "/" + "/".join(
            choose.choice(("a", "b", "ab", "aab", "x")) for _ in range(choose.randint(1, 5))
        )
        expected = glob_pattern(glob).fullmatch(path) is not None
        assert _Automaton(glob).accepts(path) is expected, (glob, path)
        held += expected
    assert held > 200


def test_a_glob_of_many_stars_takes_no_time() -> None:
    places = Places("at", ("/**/a" * 60 + "/**",))
    assert places.holds("/a" * 200)
    assert not places.holds("/a" * 59 + "/b" * 200)
