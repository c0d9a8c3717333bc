"""Attempts at files under a run: each is seen with its path, none is prevented, and none is made up.

What the file system shows afterwards is held against what the record says.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from disarming import disarmed
from evidence import CAPABILITY, FAIL, PASS
from missing import missing
from stage import Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

X86 = os.uname().machine == "x86_64"


def work(stage: Stage, **files: str) -> Path:
    """Make the folder that the rules are about, with *files* in it (`_` stands for a dot)."""
    folder = stage.folder / "work"
    folder.mkdir()
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="ascii")
    stage.own()
    return folder


def events(ran: Ran) -> list[tuple[str, str, str | None]]:
    """Return the attempts that the lane of files lists: operation, path, where a rename goes."""
    return [
        (str(e["operation"]), _name(e["path"]), None if e["to"] is None else _name(e["to"]))
        for e in ran.record.lane("files")
        if e["kind"] == "event"
    ]


def _name(path: object) -> str:
    return Path(str(path)).name


def notes(ran: Ran) -> dict[str, object]:
    return {
        Path(str(e["path"])).name: e["note"]
        for e in ran.record.lane("files")
        if e["kind"] == "event"
    }


def counted(ran: Ran, rule: str) -> object:
    hits = ran.record.rule(rule)["hits"]
    assert isinstance(hits, dict)
    return hits["counted"]


def rules(folder: Path, operations: str = "destroy, write") -> dict[str, str]:
    return {"probe.files": f"expect no {operations} under {folder}"}


@pytest.mark.case("C40")
def test_a_shell_s_redirections_and_what_destroys(stage: Stage) -> None:
    folder = work(stage, real_txt="1", cut_txt="22", new_txt="new", old_txt="old")
    shell = "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >/dev/null; done; : > real.txt"
    python = (
        "import os; os.truncate('cut.txt', 1); os.rename('new.txt', 'old.txt')\n"
        "try: os.unlink('missing.txt')\n"
        "except FileNotFoundError: pass"
    )
    script = f'cd {folder}; {shell}; exec {stage.product.python} -c "{python}"'
    held = stage.contained(stage.flow(rules(folder, "destroy"), ["sh", "-c", script]))
    assert events(held) == [
        ("truncate", "real.txt", None),
        ("truncate", "cut.txt", None),
        ("rename", "new.txt", "old.txt"),
        ("delete", "missing.txt", None),
    ], held
    assert notes(held)["missing.txt"] == "no effect: nothing is there"
    assert notes(held)["new.txt"] == "it replaces what is there"
    assert not any("null" in str(e) for e in held.record.lane("files")), held
    assert (counted(held, "probe.files"), held.record.verdict, held.code) == (4, FAIL, 1), held
    # none of it was prevented
    assert {p.name: p.read_text(encoding="ascii") for p in folder.iterdir()} == {
        "real.txt": "",
        "cut.txt": "2",
        "old.txt": "new",
    }


def test_a_program_that_touches_nothing_there_is_green(stage: Stage) -> None:
    folder = work(stage, real_txt="1")
    script = f"cat {folder}/real.txt >/dev/null; echo x > {stage.folder}/beside.txt"
    ran = stage.contained(stage.flow(rules(folder), ["sh", "-c", script]))
    assert (ran.record.verdict, ran.code, events(ran)) == (PASS, 0, []), ran
    assert (stage.folder / "beside.txt").exists()
    tier = ran.record.data["lanes"]["files"]["tier"]  # type: ignore[index]  # JSON
    assert tier["word"] == "observed", tier
    canary = ran.record.data["file_canary"]
    assert isinstance(canary, dict)
    assert (canary["call"], canary["seen"], canary["held"]) == ("unlink", "let-through", True)


SHORT = pytest.mark.parametrize("act", ["rm", "keep"])


@SHORT
def test_the_short_form_judges_the_command_s_folder(stage: Stage, act: str) -> None:
    folder = work(stage, a_txt="1")
    script = "rm a.txt" if act == "rm" else "cat a.txt"
    path = stage.flow(
        None,
        ["sh", "-c", script],
        agent={"cwd": "work"},
        steps=["assert_no_file_delete"],
    )
    ran = stage.contained(path)
    expected = (FAIL, 1) if act == "rm" else (PASS, 0)
    assert (ran.record.verdict, ran.code) == expected, ran
    assert (folder / "a.txt").exists() is (act == "keep")


CALLS: list[tuple[list[str], list[tuple[str, str, str | None]]]] = [
    (["unlink", "a.txt", "-"], [("delete", "a.txt", None)]),
    (["rmdir", "empty", "-"], [("delete", "empty", None)]),
    (["rename", "a.txt", "b.txt"], [("rename", "a.txt", "b.txt")]),
    (["truncate", "a.txt", "-"], [("truncate", "a.txt", None)]),
    (["creat", "a.txt", "-"], [("truncate", "a.txt", None)]),
    (["creat", "n.txt", "-"], [("write", "n.txt", None)]),
    (["open-cut", "a.txt", "-"], [("truncate", "a.txt", None)]),
    (["open-write", "a.txt", "-"], [("write", "a.txt", None)]),
    (["open-make", "n.txt", "-"], [("write", "n.txt", None)]),
    (["open-read", "a.txt", "-"], []),
    (["mkdir", "made", "-"], [("write", "made", None)]),
    (["mknod", "fifo2", "-"], [("write", "fifo2", None)]),
    (["symlink", "a.txt", "link2"], [("write", "link2", None)]),
    (["link", "a.txt", "hard"], [("write", "hard", None)]),
    (["ftruncate", "a.txt", "-"], [("write", "a.txt", None), ("truncate", "a.txt", None)]),
    (["ftruncate-unnamed", "-", "-"], []),
    (["unlinkat", "a.txt", "-"], [("delete", "a.txt", None)]),
    (["removedir", "empty", "-"], [("delete", "empty", None)]),
    (["renameat", "a.txt", "n.txt"], [("rename", "a.txt", "n.txt")]),
    (["keep", "a.txt", "b.txt"], [("rename", "a.txt", "b.txt")]),
    (["exchange", "a.txt", "b.txt"], [("rename", "a.txt", "b.txt")]),
    (["mkdirat", "made", "-"], [("write", "made", None)]),
    (["mknodat", "fifo2", "-"], [("write", "fifo2", None)]),
    (["symlinkat", "a.txt", "link2"], [("write", "link2", None)]),
    (["linkat", "a.txt", "hard"], [("write", "hard", None)]),
    (["openat-cut", "a.txt", "-"], [("truncate", "a.txt", None)]),
    (["openat-append", "a.txt", "-"], [("write", "a.txt", None)]),
    (["openat-append", "link", "-"], [("write", "b.txt", None)]),
    (["openat-nofollow", "link", "-"], [("write", "link", None)]),
    (["openat-new", "a.txt", "-"], [("write", "a.txt", None)]),
    (["openat-read", "a.txt", "-"], []),
    (["openat2-cut", "a.txt", "-"], [("truncate", "a.txt", None)]),
    (["openat2-root", "/a.txt", "-"], [("truncate", "a.txt", None)]),
    (["openat2-read", "a.txt", "-"], []),
    (["unlink", "link", "-"], [("delete", "link", None)]),
    (["truncate", "link", "-"], [("truncate", "b.txt", None)]),
]
"""What is done in the folder, and what has to be seen of it."""
LEGACY = {"unlink", "rmdir", "rename", "creat", "mkdir", "mknod", "symlink", "link"}


def _everything(folder: Path) -> Path:
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("b.txt")
    return folder


def test_each_call_is_seen_once_and_ends_as_bare(stage: Stage) -> None:
    """Each in a folder of its own, all in one run; the same acts bare end with the same errno."""
    acts: list[str] = []
    expected: list[tuple[str, str, str | None]] = []
    top = work(stage)
    for at, (act, seen) in enumerate(CALLS):
        if not X86 and (act[0] in LEGACY or act[0].startswith("open-")):
            continue
        folder = top / f"{at:02}"
        for kind in ("bare", "held"):
            (folder / kind).mkdir(parents=True)
            for name in ("a", "b"):
                (folder / kind / f"{name}.txt").write_text(name, encoding="ascii")
            _everything(folder / kind)
        acts += ["chdir", "FOLDER", "-", "in", ".", "-", *act]
        acts[-5] = "."
        acts[-8] = str(folder / "KIND")
        expected += seen
    stage.own()

    def done(kind: str) -> list[str]:
        return stage.program("file_acts.py", *[word.replace("KIND", kind) for word in acts])

    bare = stage.bare(done("bare"))
    held = stage.contained(stage.flow(rules(top, "destroy, write"), done("held")))
    assert events(held) == expected, held
    assert counted(held, "probe.files") == len(expected)
    for done_held, found in held.report.items():
        assert bare.report[done_held.replace("held", "bare")] == found, done_held


def _seen_from(stage: Stage, *acts: str, operations: str = "destroy, write") -> Ran:
    return stage.contained(
        stage.flow(rules(stage.folder / "work", operations), stage.program("file_acts.py", *acts))
    )


def test_a_path_is_told_as_it_resolves(stage: Stage) -> None:
    folder = work(stage, a_txt="a", b_txt="b", c_txt="c", d_txt="d")
    (folder / "sub").mkdir()
    (stage.folder / "way").symlink_to(folder)
    stage.own()
    ran = _seen_from(
        stage,
        *("unlink" if X86 else "unlinkat", str(stage.folder / "way" / "a.txt"), "-"),
        *("chdir", str(folder / "sub"), "-"),
        *("unlinkat", "../b.txt", "-"),
        *("unlinkat", "/proc/self/cwd/../c.txt", "-"),
        *("in", str(folder), "-"),
        *("unlinkat", "sub/.././d.txt", "-"),
        operations="delete",
    )
    assert events(ran) == [("delete", f"{name}.txt", None) for name in "abcd"], ran
    assert [p.name for p in folder.iterdir()] == ["sub"]


def test_a_file_reached_by_its_descriptor_in_proc(stage: Stage) -> None:
    folder = work(stage, a_txt="a")
    script = f"exec 3<{folder}/a.txt; : > /proc/self/fd/3; echo told > /dev/stderr; echo out > /dev/stdout"
    ran = stage.contained(stage.flow(rules(folder), ["sh", "-c", script]))
    assert events(ran) == [("truncate", "a.txt", None)], ran
    assert (folder / "a.txt").read_text(encoding="ascii") == ""


def test_a_rename_out_of_the_folder_deletes_and_one_into_it_does_not(stage: Stage) -> None:
    folder = work(stage, a_txt="a")
    (stage.folder / "in.txt").write_text("in", encoding="ascii")
    stage.own()
    out = ["renameat", str(folder / "a.txt"), str(stage.folder / "out.txt")]
    into = ["renameat", str(stage.folder / "in.txt"), str(folder / "in.txt")]
    ran = _seen_from(stage, *out, *into, operations="delete")
    assert events(ran) == [("rename", "a.txt", "out.txt")], ran
    assert (folder / "in.txt").exists()


def test_what_an_exception_holds_is_not_counted(stage: Stage) -> None:
    folder = work(stage, keep_txt="1", old_log="2")
    policy = {"probe.files": f"expect no delete under {folder} except at {folder}/*.log"}
    ran = stage.contained(stage.flow(policy, ["rm", str(folder / "old.log")]))
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
    ran = stage.contained(stage.flow(policy, ["rm", str(folder / "keep.txt")]))
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


def test_observe_alone_reports_and_claims_nothing(stage: Stage) -> None:
    folder = work(stage, a_txt="1")
    policy = {
        "probe.look": f"observe delete under {folder}",
        "probe.no": "deny connect to 10.99.0.2",
    }
    ran = stage.contained(stage.flow(policy, ["rm", str(folder / "a.txt")]))
    seen = [e for e in ran.record.lane("files") if e["kind"] == "seen"]
    assert [(e["operation"], Path(str(e["path"])).name, e["count"]) for e in seen] == [
        ("delete", "a.txt", 1)
    ], ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_a_chroot_is_seen_through(root_stage: Stage) -> None:
    folder = work(root_stage, a_txt="1")
    ran = _seen_from(
        root_stage, "chroot", str(folder), "-", "chdir", "/", "-", "unlinkat", "/../a.txt", "-"
    )
    if ran.report["chroot " + str(folder) + " -"] != "ok":
        missing("the right to change the root")
    assert events(ran) == [("delete", "a.txt", None)], ran
    assert not (folder / "a.txt").exists()


# --- never green


def test_one_mount_namespace_further_nothing_can_be_told(stage: Stage) -> None:
    folder = work(stage, a_txt="1")
    ran = _seen_from(stage, "mounts", "-", "-", "unlinkat", str(folder / "a.txt"), "-")
    if events(ran):  # it stayed where it was
        missing("mount namespaces for this user")
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("PATH"), ran.record.text
    assert (folder / "a.txt").exists(), "what cannot be told is not let through"


def test_a_program_whose_memory_cannot_be_read(plain_stage: Stage) -> None:
    folder = work(plain_stage, a_txt="1")
    acts = ["undumpable", "-", "-", "unlinkat", str(folder / "a.txt"), "-"]
    ran = _seen_from(plain_stage, *acts)
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("CHILD_MEMORY"), ran.record.text
    assert (folder / "a.txt").exists()


def test_a_pointer_to_no_path_is_a_fault(stage: Stage) -> None:
    work(stage)
    ran = _seen_from(stage, "bad-pointer", "-", "-")
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("CHILD_MEMORY"), ran.record.text
    assert ran.report["bad-pointer - -"] == "EFAULT"


def test_a_fault_about_files_is_none_of_the_connect_lane(stage: Stage) -> None:
    folder = work(stage)
    policy = {
        "probe.files": f"expect no delete under {folder}",
        "probe.deny": "deny connect to 10.99.0.2",
    }
    command = stage.program("file_acts.py", "bad-pointer", "-", "-")
    ran = stage.contained(stage.flow(policy, command))
    assert ran.record.rule("probe.files")["verdict"] == CAPABILITY, ran
    assert ran.record.rule("probe.deny")["verdict"] == PASS, ran
    assert ran.code == 3


@pytest.mark.parametrize(
    ("acts", "code"),
    [
        (["exit", "3", "-"], "COMMAND_EXIT"),
        (["sleep", "30", "-"], "COMMAND_TIMEOUT"),
        (["linger", "30", "-"], "SURVIVORS"),
    ],
)
def test_an_end_that_is_not_expected_is_not_green(stage: Stage, acts: list[str], code: str) -> None:
    folder = work(stage)
    path = stage.flow(rules(folder), stage.program("file_acts.py", *acts))
    ran = stage.contained(path, "--timeout", "3s")
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions(code), ran.record.text


def test_the_same_program_that_ends_as_expected_is_green(stage: Stage) -> None:
    work(stage)
    ran = _seen_from(stage, "exit", "0", "-")
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@pytest.mark.parametrize(
    ("how", "verdict", "code"),
    [("none", FAIL, None), ("program", CAPABILITY, "CANARY"), ("rows", PASS, None)],
)
def test_disarmed_the_same_scenario_inverts(
    plain_stage: Stage, how: str, verdict: str, code: str | None
) -> None:
    """Without the filter the canary is not seen and nothing starts; without the rows nothing is counted."""
    folder = work(plain_stage, a_txt="1")
    ran = disarmed(plain_stage, rules(folder), how, ["rm", str(folder / "a.txt")])
    assert ran.record.verdict == verdict, ran
    assert code is None or ran.record.mentions(code), ran.record.text
    assert (folder / "a.txt").exists() is (how == "program")
