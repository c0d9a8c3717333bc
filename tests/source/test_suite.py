"""A path as given, to flows and the packs that they reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowproof.diagnostics import Report
from flowproof.source.suite import Suite, load

RULES = "rules:\n  {}: deny connect to 10.0.0.2\n"


def flow(*uses: str, control: str = "t.f") -> str:
    return f"name: T\ncontrol:\n  id: {control}\n  uses: [{', '.join(uses)}]\n"


def pack(name: str, *uses: str) -> str:
    return f"policy: {name}\nuses: [{', '.join(uses)}]\n" + RULES.format(f"{name}.r")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        kind = "policy" if text.startswith("policy") else "flow"
        path = folder / f"{name.replace('__', '/')}.{kind}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def good(path: str) -> Suite:
    report = Report()
    suite = load(path, report)
    assert not list(report), list(report)
    assert suite is not None
    return suite


def said(path: str) -> list[tuple[str, str]]:
    report = Report()
    load(path, report)
    return [(d.code, str(d.span)) for d in report]


def test_a_folder_holds_its_flows_and_those_below_sorted_and_no_hidden_ones(folder: Path) -> None:
    for name in ("s__b", "s__a", "s__a-__c", "s__a__d", "s__.hidden__e", "s__.f", "s__z"):
        write(folder, **{name: flow(control=name.replace("_", "").replace(".", ""))})
    (folder / "s" / "notes.yaml").write_text("- no flow")
    (folder / "s" / "unused.policy.yaml").write_text("not: read")
    assert [f.flow.path for f in good("s").flows] == [
        *("s/a/d.flow.yaml", "s/a-/c.flow.yaml", "s/a.flow.yaml", "s/b.flow.yaml", "s/z.flow.yaml")
    ]


def test_an_empty_folder_is_for_the_caller_to_judge(folder: Path) -> None:
    suite = good(".")
    assert suite.flows == ()
    assert suite.packs == ()


def test_names_are_those_that_the_user_gave(folder: Path) -> None:
    write(folder, s__x=flow("../p/base.policy.yaml"), p__base=pack("base", "sub/q.policy.yaml"))
    write(folder, p__sub__q=pack("q"))
    (loaded,) = good("s").flows
    assert loaded.flow.source.name == "s/x.flow.yaml"
    assert [p.source.name for p in loaded.packs] == ["p/base.policy.yaml", "p/sub/q.policy.yaml"]
    (absolute,) = good(str(folder / "s")).flows
    assert absolute.packs[0].path == str(folder / "p" / "base.policy.yaml")


def test_packs_come_in_the_order_of_first_use_each_once(folder: Path) -> None:
    write(folder, x=flow("a.policy.yaml", "c.policy.yaml", "./a.policy.yaml"))
    write(folder, a=pack("a", "b.policy.yaml"), b=pack("b", "c.policy.yaml"), c=pack("c"))
    (loaded,) = good("x.flow.yaml").flows
    assert [p.name.value for p in loaded.packs if p.name] == ["a", "b", "c"]


def test_a_pack_that_two_flows_use_is_read_once(folder: Path) -> None:
    write(
        folder,
        s__x=flow("p.policy.yaml"),
        s__y=flow("p.policy.yaml", control="t.g"),
        s__p=pack("p"),
    )
    first, second = good("s").flows
    assert first.packs[0] is second.packs[0]


def test_a_link_to_a_pack_is_that_pack(folder: Path) -> None:
    write(folder, x=flow("a.policy.yaml", "b.policy.yaml"), a=pack("a"))
    (folder / "b.policy.yaml").symlink_to("a.policy.yaml")
    (loaded,) = good("x.flow.yaml").flows
    assert [p.path for p in loaded.packs] == ["a.policy.yaml"]


def test_a_pack_alone_brings_the_packs_that_it_uses(folder: Path) -> None:
    write(folder, a=pack("a", "b.policy.yaml"), b=pack("b"))
    suite = good("a.policy.yaml")
    ((loaded),) = suite.packs
    assert suite.flows == ()
    assert loaded.pack.name is not None
    assert loaded.pack.name.value == "a"
    assert [p.path for p in loaded.packs] == ["b.policy.yaml"]


def test_a_pack_without_a_name_is_read(folder: Path) -> None:
    (folder / "My Pack.policy.yaml").write_text(RULES.format("a"))
    (loaded,) = good("My Pack.policy.yaml").packs
    assert (loaded.pack.name, loaded.pack.slug) == (None, "my-pack")


def test_a_circle_is_named_once_where_it_closes(folder: Path) -> None:
    write(folder, s__x=flow("p.policy.yaml"), s__y=flow("q.policy.yaml", control="t.g"))
    write(
        folder,
        s__p=pack("p", "q.policy.yaml"),
        s__q=pack("q", "r.policy.yaml"),
        s__r=pack("r", "p.policy.yaml"),
    )
    report = Report()
    suite = load("s", report)
    (error,) = report
    assert (error.code, str(error.span)) == ("FP231", "s/r.policy.yaml:2:8")
    assert all(f"s/{name}.policy.yaml" in error.message for name in "pqr")
    assert suite is not None
    assert [len(f.packs) for f in suite.flows] == [3, 3]


def test_a_pack_alone_that_uses_itself_is_a_circle(folder: Path) -> None:
    write(folder, a=pack("a", "a.policy.yaml"))
    assert said("a.policy.yaml") == [("FP231", "a.policy.yaml:2:8")]


def test_two_ways_to_one_pack_are_no_circle(folder: Path) -> None:
    write(folder, x=flow("a.policy.yaml", "b.policy.yaml"))
    write(folder, a=pack("a", "c.policy.yaml"), b=pack("b", "c.policy.yaml"), c=pack("c"))
    assert said("x.flow.yaml") == []


def test_each_entry_that_names_a_missing_pack_is_told_so(folder: Path) -> None:
    write(folder, s__x=flow("gone.policy.yaml"), s__y=flow("gone.policy.yaml", control="t.g"))
    assert said("s") == [("FP230", "s/x.flow.yaml:4:10"), ("FP230", "s/y.flow.yaml:4:10")]


def test_a_missing_pack_is_told_its_near_miss(folder: Path) -> None:
    write(folder, x=flow("bas.policy.yaml"), base=pack("base"))
    report = Report()
    load("x.flow.yaml", report)
    (error,) = report
    assert error.help == "did you mean `base.policy.yaml`?"


@pytest.mark.parametrize(
    "entry", ["y.flow.yaml", "base", "base.policy.yml", "'\\0'", '"a\\0.policy.yaml"']
)
def test_what_is_no_pack_is_not_taken_in(folder: Path, entry: str) -> None:
    write(folder, x=flow(entry), y=flow(control="t.g"))
    assert said("x.flow.yaml") == [("FP232", "x.flow.yaml:4:10")]


def test_an_error_in_a_pack_stands_in_the_pack_and_the_flow_is_read(folder: Path) -> None:
    write(folder, x=flow("p.policy.yaml"), p="policy: p\nrules:\n  - a\n")
    report = Report()
    suite = load("x.flow.yaml", report)
    assert [(d.code, str(d.span)) for d in report] == [("FP222", "p.policy.yaml:3:3")]
    assert suite is not None
    assert len(suite.flows) == 1


@pytest.mark.parametrize(
    ("path", "code"), [("gone.flow.yaml", "FP230"), ("gone", "FP230"), ("here.txt", "FP232")]
)
def test_a_path_that_leads_nowhere_is_an_error(folder: Path, path: str, code: str) -> None:
    (folder / "here.txt").write_text("name: T\n")
    report = Report()
    assert load(path, report) is None
    assert [(d.code, d.span) for d in report] == [(code, None)]


def test_a_flow_that_is_a_folder_is_an_error_where_it_is_named(folder: Path) -> None:
    (folder / "p.policy.yaml").mkdir()
    write(folder, x=flow("p.policy.yaml"))
    assert said("x.flow.yaml") == [("FP230", "x.flow.yaml:4:10")]


def test_one_bad_file_does_not_hide_the_others(folder: Path) -> None:
    write(folder, s__b="name: T\nname: U\n", s__c=flow(control="T"))
    (folder / "s" / "a.flow.yaml").write_bytes(b"\xff\xfe")
    report = Report()
    suite = load("s", report)
    assert [str(d.span) for d in report] == [
        *("s/a.flow.yaml:1:1", "s/b.flow.yaml:2:1", "s/c.flow.yaml:3:7")
    ]
    assert suite is not None
    assert len(suite.flows) == 2
