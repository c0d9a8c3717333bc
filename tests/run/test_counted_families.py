"""A socket of another family is counted where it is not refused: it could send without an address."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from authored import policy

from flowproof.exit_codes import ExitCode
from flowproof.lower.backend import compile_policy
from flowproof.record.model import Verdict
from flowproof.run.command import Command
from flowproof.run.recorder import run

pytestmark = pytest.mark.enforce
PYTHON = "/usr/bin/python3"

VSOCK = "import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)"


@pytest.mark.parametrize(
    ("sentence", "code", "want"),
    [
        ("expect no connect to anything", VSOCK, (ExitCode.NEGATIVE, Verdict.FAIL)),
        ("expect no connect to anything else", VSOCK, (ExitCode.NEGATIVE, Verdict.FAIL)),
        (
            "expect no connect to anything",
            "import socket; socket.socket()",
            (ExitCode.OK, Verdict.PASS),
        ),
        ("expect no connect tcp to anything", VSOCK, (ExitCode.OK, Verdict.PASS)),
    ],
)
def test_a_socket_of_another_family_counts_and_works(
    sentence: str, code: str, want: tuple[ExitCode, Verdict], tmp_path: Path
) -> None:
    artifact = compile_policy(policy({"quiet": sentence}), f"linux-{os.uname().machine}")
    command = Command((PYTHON, "-c", code), str(tmp_path), {}, 30.0, 0, None, "families")
    outcome = run(artifact, command, record_root=str(tmp_path), proven=True)
    assert (outcome.exit_code, outcome.record.controls[0].verdict) == want, outcome.reasons
