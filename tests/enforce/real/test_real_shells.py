"""A shell's pipeline, a thousand times: a pipe and three forks each, and never a hang or a lost byte."""

from __future__ import annotations

import pytest
from evidence import PASS
from missing import installed
from stage import Y0, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

TIMES = 1000
BYTES = 150_000
"""More than twice what a pipe holds (64 KiB, pipe(7)): the writer has to wait for its reader."""

SCRIPT = f"""
head -c {BYTES} /dev/zero >block
i=0
while [ $i -lt {TIMES} ]; do
    cat block | tr '\\000' x | wc -c
    i=$((i + 1))
done >counts
echo done
"""


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_thousand_pipelines_lose_no_byte(shell: str, plain_stage: Stage) -> None:
    installed(shell)
    path = plain_stage.flow(Y0, [shell, "-c", SCRIPT], agent={"timeout": "90s"})
    ran = plain_stage.contained(path, limit=100)
    counts = (plain_stage.folder / "counts").read_text(encoding="ascii").split()
    assert counts == [str(BYTES)] * TIMES, (len(counts), set(counts), ran)
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


CALLING = """
exec 3<>/dev/tcp/10.99.0.1/9000
i=0
while [ $i -lt 200 ]; do
    { exec 4<>/dev/tcp/10.99.0.1/9000; echo probe >&4; head -c 6 <&4; } | cat | tr a-z A-Z
    i=$((i + 1))
done >answers
"""


def test_pipelines_that_connect_lose_no_byte(plain_stage: Stage) -> None:
    installed("bash")
    ran = plain_stage.contained(plain_stage.flow(Y0, ["bash", "-c", CALLING]))
    answers = (plain_stage.folder / "answers").read_text(encoding="ascii").splitlines()
    assert answers == ["PROBE"] * 200, (len(answers), ran)
    assert ran.reached("10.99.0.1") == 201, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
