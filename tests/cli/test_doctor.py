"""`flowproof doctor` calls nothing enforced that a command could walk around."""

from __future__ import annotations

import pytest

from flowproof.cli.main import main
from flowproof.run.kernel import Kernel

pytestmark = pytest.mark.enforce


def test_what_holds_is_called_enforced(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "connect (connections, datagrams and listening sockets): enforced\n" in (
        capsys.readouterr().out
    )


def test_nothing_is_enforced_where_other_processes_are_within_reach(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Kernel, "seclusion", lambda _kernel: None)
    assert main(["doctor"]) == 3
    printed = capsys.readouterr().out
    assert "listening sockets): none (NOT_SECLUDED)" in printed
    assert "Landlock" in printed
