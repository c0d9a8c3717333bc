from __future__ import annotations

import pytest

from flowproof.diagnostics import Report, Source
from flowproof.syntax.paths import normalise, unix

PLACE = Source("x", "").span(0)


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("/srv", "/srv"),
        ("/srv/", "/srv"),
        ("//srv//a/./b/.", "/srv/a/b"),
        ("/", "/"),
        ("//", "/"),
        ("/.", "/"),
        ("a/b", "${cwd}/a/b"),
        ("./a", "${cwd}/a"),
        (".", "${cwd}"),
        ("./", "${cwd}"),
        ("~", "~"),
        ("~/", "~"),
        ("~/.config", "~/.config"),
        ("./~user", "${cwd}/~user"),
        ("${cwd}", "${cwd}"),
        ("${cwd}/", "${cwd}"),
        ("${tmp}//x", "${tmp}/x"),
        ("${HOME}/x", "${HOME}/x"),
        ("/srv/...", "/srv/..."),
        ("/srv/..a", "/srv/..a"),
        ("/srv/$HOME", "/srv/$HOME"),
        ("/srv/**/*.log", "/srv/**/*.log"),
        ("/srv/a b", "/srv/a b"),
    ],
)
def test_a_path_is_normalised_by_text(written: str, means: str) -> None:
    report = Report()
    assert normalise(written, PLACE, report) == means
    assert normalise(means, PLACE, report) == means
    assert not list(report)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("", "empty"),
        ("..", "`..`"),
        ("/srv/../etc", "`..`"),
        ("a/..", "`..`"),
        ("${cwd}/..", "`..`"),
        ("~user/x", "`./~user/x`"),
        ("/srv/${NAME}", "at the beginning"),
        ("${NAME}x", "at the beginning"),
        ("${1}/x", "at the beginning"),
        ("${A}/${B}", "at the beginning"),
        ("/srv/a\0b", "zero byte"),
    ],
)
def test_a_path_that_could_mean_another_place_is_refused(written: str, says: str) -> None:
    report = Report()
    assert normalise(written, PLACE, report) is None
    (error,) = report
    assert error.code == "FP306"
    assert says in f"{error.message} {error.help}"


def test_an_abstract_name_is_taken_as_it_stands() -> None:
    assert unix("@a//b/../", PLACE, Report()) == "@a//b/../"


def test_a_star_in_a_socket_path_is_warned_about() -> None:
    report = Report()
    assert unix("/run/*.sock", PLACE, report) == "/run/*.sock"
    assert [d.code for d in report] == ["FP308"]


def test_a_port_behind_a_socket_path_is_warned_about() -> None:
    report = Report()
    assert unix("/run/db.sock:5432", PLACE, report) == "/run/db.sock:5432"
    (warning,) = report
    assert warning.code == "FP308"
    assert warning.help == "write `unix:/run/db.sock`"


def test_a_colon_inside_a_socket_path_goes_without_a_word() -> None:
    report = Report()
    assert unix("/run/a:1/db.sock", PLACE, report) == "/run/a:1/db.sock"
    assert not list(report)
