"""The formatter: canonical sentences and order, comments kept, the meaning unmoved, and a fixed point."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import sentences

from flowproof.diagnostics import Report
from flowproof.fmt.document import MeaningMovedError, formatted, meaning_of
from flowproof.fmt.sentences import rewritten
from flowproof.source.suite import load
from flowproof.syntax.render import render

VECTORS = Path(__file__).parents[1] / "vectors"
HEAD = "name: T\nagent:\n  command: python3 bot.py\ncontrol:\n  id: t.f\n  rules:\n"


def form(path: Path) -> bytes:
    """Return a file's canonical form, which has been proved to mean the same."""
    report = Report()
    suite = load(str(path), report)
    assert suite is not None, list(report)
    (loaded,) = suite.flows or suite.packs
    meaning = meaning_of(loaded, report)
    assert meaning is not None, list(report)
    assert not report.errors
    return formatted(loaded, path.read_bytes(), meaning)


def of(text: str | bytes, folder: Path, name: str = "x.flow.yaml") -> str:
    """Return the canonical form of a file that holds *text*; that it is its own form is asserted."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    once = form(path)
    path.write_bytes(once)
    assert form(path) == once
    return once.decode()


def rules(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


def vectors() -> list[dict[str, Any]]:
    return [
        vector
        for name in ("accepted", "connect", "files")
        for vector in json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    ]


def test_every_file_of_the_vectors_keeps_its_meaning_and_has_one_form(tmp_path: Path) -> None:
    seen: set[bytes] = set()
    changed = 0
    for number, vector in enumerate(vectors()):
        folder = tmp_path / str(number)
        contents = {name: text.encode() for name, text in vector.get("files", {}).items()}
        contents |= {k: base64.b64decode(v) for k, v in vector.get("files_b64", {}).items()}
        if (key := repr(sorted(contents.items())).encode()) in seen:
            continue
        seen.add(key)
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        for name, content in contents.items():
            once = form(folder / name)
            (folder / name).write_bytes(once)
            assert form(folder / name) == once, vector["id"]
            changed += once != content
    assert len(seen) > 100
    assert changed > 20


def test_comments_and_blank_lines_stay_where_they_are(tmp_path: Path) -> None:
    text = (
        "# heads the file\n"
        "\n"
        "name: T  # the name\n"
        "\n"
        "control:\n"
        "  # about the id\n"
        "  id: t.f\n"
        "  rules:\n"
        "\n"
        "    # about the rule\n"
        "    t.f.a:   deny connect to 10.0.0.0/8:443   # behind it\n"
        "    # at the end of the rules\n"
        "# at the end of the file\n"
    )
    assert of(text, tmp_path) == text


def test_a_sentence_is_spelt_canonically(tmp_path: Path) -> None:
    text = rules("t.f.a: deny   connect tcp,udp to API.Example.com.:443,LOCALHOST,10.0.0.1/32")
    assert of(text, tmp_path) == rules(
        "t.f.a: deny connect tcp, udp to api.example.com:443, loopback, 10.0.0.1"
    )


@pytest.mark.parametrize(
    "written",
    [
        '"deny connect to 10.0.0.0/8"',
        "'deny connect to 10.0.0.0/8'",
        '"deny\\x20connect \\\n      to 10.0.0.0/8"',
        "deny\n      connect to\n      10.0.0.0/8",
        "|\n      deny connect to\n      10.0.0.0/8",
        ">-\n      deny connect to\n      10.0.0.0/8",
        "|2+\n      deny connect to 10.0.0.0/8",
        "\n      deny connect to 10.0.0.0/8",
    ],
)
def test_a_short_sentence_is_plain_and_on_one_line_however_it_was_written(
    written: str, tmp_path: Path
) -> None:
    text = rules(f"t.f.a: {written}", "t.f.b: deny connect to 192.0.2.1")
    found = of(text, tmp_path)
    assert " deny connect to 10.0.0.0/8\n" in found
    assert found.count("'") + found.count('"') + found.count("|") + found.count(">") == 0


@pytest.mark.parametrize(
    ("sentence", "written"),
    [
        ('deny connect to 10.0.0.1 because "a: b"', "'deny connect to 10.0.0.1 because \"a: b\"'"),
        ('deny connect to 10.0.0.1 because "a #b"', "'deny connect to 10.0.0.1 because \"a #b\"'"),
        ('deny connect to 10.0.0.1 because "it\'s"', 'deny connect to 10.0.0.1 because "it\'s"'),
        (
            'deny connect to 10.0.0.1 because "it\'s: b"',
            "'deny connect to 10.0.0.1 because \"it''s: b\"'",
        ),
        (
            'deny connect to 10.0.0.1 because "a\u2028b"',
            '"deny connect to 10.0.0.1 because \\"a\\u2028b\\""',
        ),
        (
            'deny connect to 10.0.0.1 because "a\tb"',
            '"deny connect to 10.0.0.1 because \\"a\\tb\\""',
        ),
    ],
)
def test_quotes_stand_where_yaml_needs_them_and_nowhere_else(
    sentence: str, written: str, tmp_path: Path
) -> None:
    given_in_quotes = "'" + sentence.replace("'", "''") + "'"
    assert of(rules(f"t.f.a: {given_in_quotes}"), tmp_path) == rules(f"t.f.a: {written}")


def test_a_line_break_inside_a_reason_is_kept(tmp_path: Path) -> None:
    text = rules('t.f.a: |\n      deny connect to 10.0.0.1 because "one\n      two"')
    expected = rules('t.f.a: "deny connect to 10.0.0.1 because \\"one\\ntwo\\""')
    assert of(text, tmp_path) == expected


def test_a_long_sentence_is_folded_at_its_spaces(tmp_path: Path) -> None:
    hosts = [f"host-{number}.example.com:443" for number in range(12)]
    found = of(rules(f"t.f.a: allow connect to {','.join(hosts)}"), tmp_path)
    lines = found.removeprefix(HEAD).splitlines()
    assert lines[0] == "    t.f.a: >-"
    assert all(len(line) <= 100 and line.startswith("      ") for line in lines[1:])
    assert " ".join(line.strip() for line in lines[1:]) == f"allow connect to {', '.join(hosts)}"


def test_the_clauses_of_a_folded_sentence_begin_lines_of_their_own(tmp_path: Path) -> None:
    hosts = ", ".join(f"10.0.{number}.0/24:443" for number in range(4))
    reason = '"for \\"now\\" because they say so, and nobody is to find this line broken in two"'
    text = rules(f"t.f.a: 'deny connect to {hosts} except 10.0.0.1:443 because {reason}'")
    assert of(text, tmp_path) == rules(
        "t.f.a: >-",
        f"  deny connect to {hosts}",
        "  except 10.0.0.1:443",
        f"  because {reason}",
    )


def test_the_comment_in_the_header_of_a_block_stays(tmp_path: Path) -> None:
    text = rules("t.f.a: >  # why\n      deny connect to 10.0.0.1", "t.f.b: deny connect to ::1")
    assert of(text, tmp_path) == rules(
        "t.f.a: deny connect to 10.0.0.1  # why", "t.f.b: deny connect to ::1"
    )
    long = ", ".join(f"10.0.{number}.0/24:443" for number in range(12))
    found = of(rules(f"t.f.a: >  # why\n      deny connect to {long}"), tmp_path)
    assert "t.f.a: >-  # why\n      deny connect" in found


def test_a_comment_behind_a_sentence_that_is_folded_stays(tmp_path: Path) -> None:
    long = ", ".join(f"10.0.{number}.0/24:443" for number in range(12))
    found = of(rules(f'"t.f.a": "deny connect to {long}"  # why'), tmp_path)
    assert '"t.f.a": >-  # why\n      deny connect' in found


def test_line_ends_and_the_byte_order_mark_stay(tmp_path: Path) -> None:
    text = rules('t.f.a: "deny connect to 10.0.0.1"').replace("\n", "\r\n")
    found = of(b"\xef\xbb\xbf" + text.encode(), tmp_path)
    assert found == "\ufeff" + text.replace('"', "")
    hosts = ", ".join(f"10.0.{number}.0/24:443" for number in range(12))
    found = of(rules(f"t.f.a: deny connect to {hosts}").replace("\n", "\r\n"), tmp_path)
    assert found.count("\n") == found.count("\r\n") > HEAD.count("\n") + 1
    assert of(rules('t.f.a: "deny connect to ::1"').replace("\n", "\r"), tmp_path).count("\n") == 0


def test_flow_style_stays_flow_style(tmp_path: Path) -> None:
    text = (
        "{name: T, control: {id: t.f, sets: {a: '10.0.0.1'},\n"
        "  rules: {t.f.a: 'deny  connect to @a,192.0.2.1', t.f.b: \"deny connect to ::1\"}}}\n"
    )
    assert of(text, tmp_path) == (
        "{name: T, control: {id: t.f, sets: {a: 10.0.0.1},\n"
        '  rules: {t.f.a: "deny connect to @a, 192.0.2.1", t.f.b: deny connect to ::1}}}\n'
    )


def test_sets_and_entries_are_spelt_canonically(tmp_path: Path) -> None:
    text = (
        "name: T\n"
        "agent:\n"
        "  command: bot\n"
        "  allow_egress: ['API.example.com:443', \"[2001:DB8::1]:443\"]\n"
        "control:\n"
        "  id: t.f\n"
        "  sets:\n"
        "    a: '10.0.0.0/8:443,*.Example.com'\n"
        "    b:\n"
        "    - '[2001:DB8:0::1]:443'\n"
        '    - "@a"\n'
        "    - 10.0.0.1/32\n"
    )
    assert of(text, tmp_path) == (
        "name: T\n"
        "agent:\n"
        "  command: bot\n"
        '  allow_egress: [api.example.com:443, "[2001:db8::1]:443"]\n'
        "control:\n"
        "  id: t.f\n"
        "  sets:\n"
        "    a: 10.0.0.0/8:443, *.example.com\n"
        "    b:\n"
        '    - "[2001:db8::1]:443"\n'
        '    - "@a"\n'
        "    - 10.0.0.1\n"
    )


def test_an_entry_keeps_the_spelling_that_its_rule_id_comes_from(tmp_path: Path) -> None:
    text = "name: T\nagent:\n  command: bot\n  allow_egress: [10.0.0.1/32, 2001:0db8::1]\n"
    assert of(text, tmp_path) == text


def test_keys_come_in_the_order_of_the_page_each_with_its_comments(tmp_path: Path) -> None:
    text = (
        "# yaml-language-server: $schema=flow.schema.json\n"
        "control:\n"
        "  rules: {}\n"
        "    # deeper: still of the rules\n"
        "  # of the id\n"
        "  id: t.f\n"
        "  title: T\n"
        "\n"
        "# of the name\n"
        "# in two lines\n"
        "name: T\n"
        "# at the end\n"
    )
    assert of(text, tmp_path) == (
        "# yaml-language-server: $schema=flow.schema.json\n"
        "# of the name\n"
        "# in two lines\n"
        "name: T\n"
        "\n"
        "control:\n"
        "  # of the id\n"
        "  id: t.f\n"
        "  title: T\n"
        "  rules: {}\n"
        "    # deeper: still of the rules\n"
        "# at the end\n"
    )


def test_keys_without_a_last_line_break_are_ordered_where_no_value_gains_one(
    tmp_path: Path,
) -> None:
    assert of("control: {id: t.f}\nname: T", tmp_path) == "name: T\ncontrol: {id: t.f}\n"
    kept = "agent:\n  cwd: .\n  command: |\n    bot"
    assert of(f"name: T\n{kept}", tmp_path) == f"name: T\n{kept}"


def test_a_block_scalar_that_keeps_its_blank_lines_keeps_them_when_it_moves(tmp_path: Path) -> None:
    text = "rules: {}\ndescription: |+\n  two lines\n\n\npolicy: p\n"
    found = of(text, tmp_path, "p.policy.yaml")
    assert found == "policy: p\ndescription: |+\n  two lines\n\n\nrules: {}\n"


def test_blank_lines_do_not_become_part_of_a_value_that_keeps_them(tmp_path: Path) -> None:
    text = (
        "control:\n  title: |+\n    one\n  id: t.f\n\n  rules: {}\n\nname: |+\n  T\n\nagent:\n"
        "  cwd: |+\n    a\n  command: bot\n"
    )
    found = of(text, tmp_path)
    assert found == (
        "name: |+\n  T\n\nagent:\n  command: bot\n  cwd: |+\n    a\ncontrol:\n  id: t.f\n"
        "  title: |+\n    one\n  rules: {}\n"
    )


def test_a_pack_without_a_name_is_formatted_too(tmp_path: Path) -> None:
    found = of('rules: {a: "deny connect to ::1"}\n', tmp_path, "p.policy.yaml")
    assert found == "rules: {a: deny connect to ::1}\n"


def test_a_form_that_means_something_else_is_never_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.flow.yaml"
    path.write_text(rules("t.f.a: deny connect to 10.0.0.1"))

    def wrong(*arguments: Any) -> str:  # noqa: ANN401
        return rewritten(*arguments).replace("10.0.0.1", "10.0.0.2")

    monkeypatch.setattr("flowproof.fmt.document.rewritten", wrong)
    with pytest.raises(MeaningMovedError):
        form(path)

    def worse(*arguments: Any) -> str:  # noqa: ANN401
        return rewritten(*arguments).replace("bot", "not")

    monkeypatch.setattr("flowproof.fmt.document.rewritten", worse)
    with pytest.raises(MeaningMovedError, match="more of"):
        form(path)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_sentence_in_any_style_has_one_form(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    sentence = data.draw(sentences)
    text = render(sentence)
    assume(text.isprintable())
    doubled = text.replace("\\", "\\\\").replace('"', '\\"')
    singled = text.replace("'", "''")
    styles = [f'"{doubled}"', f"'{singled}'", f"|\n      {text}", f">-\n\n      {text}"]
    folder = tmp_path_factory.mktemp("fmt")
    forms = set()
    for style in styles:
        path = folder / "x.flow.yaml"
        path.write_text(rules(f"t.f.a: {style}"), encoding="utf-8")
        report = Report()
        suite = load(str(path), report)
        assert suite is not None
        # what only the meaning refuses is left out: a set that is not there, `anything else` allowed
        assume(meaning_of(suite.flows[0], report) is not None)
        forms.add(of(path.read_bytes(), folder))
    assert len(forms) == 1


def test_what_the_repository_ships_is_formatted() -> None:
    root = Path(__file__).parents[2]
    shipped = [*root.glob("policies/*.policy.yaml"), *root.glob("examples/*.flow.yaml")]
    assert len(shipped) > 3
    for path in shipped:
        assert form(path) == path.read_bytes(), f"run `flowproof fmt --write {path.name}`"
