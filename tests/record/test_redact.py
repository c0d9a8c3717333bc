"""Paths in a record: folders put back at component boundaries, longest first."""

from __future__ import annotations

import pytest

from flowproof.record.redact import Folders


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/u/work/a.py", "${cwd}/a.py"),
        ("/home/u/work", "${cwd}"),
        ("/home/u/workshop/a.py", "${home}/workshop/a.py"),
        ("/home/u/.config", "${home}/.config"),
        ("/home/user2/x", "/home/user2/x"),
        ("/var/tmp2/x", "/var/tmp2/x"),
        ("/var/tmp/x", "${tmp}/x"),
        ("@abstract", "@abstract"),
    ],
)
def test_a_folder_is_put_back(path: str, shown: str) -> None:
    assert Folders.of("/home/u/work", "/home/u", "/var/tmp").path(path) == shown


def test_the_root_is_no_folder_to_put_back() -> None:
    assert Folders.of("/", "/", "relative").path("/etc/passwd") == "/etc/passwd"


def test_paths_inside_a_text_are_put_back() -> None:
    folders = Folders.of("/home/u/work", "/home/u", "/tmp")
    assert (
        folders.text("cannot read `/home/u/work/x` or /home/u")
        == "cannot read `${cwd}/x` or ${home}"
    )
