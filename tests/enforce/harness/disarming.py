"""The negative control: a run of an artifact whose refusals were taken out."""

from __future__ import annotations

from pathlib import Path

from evidence import newest_record
from stage import Ran, Stage

__all__ = ["disarmed"]


def disarmed(stage: Stage, rules: dict[str, str], how: str, command: list[str]) -> Ran:
    """Run *command* under *rules*, the refusals of the artifact taken out *how* ``disarmed.py`` says."""
    path = stage.flow(rules, command)
    records = stage.folder / "records"
    driver = Path(__file__).with_name("disarmed.py")
    copy = stage.folder / "disarmed.py"
    copy.write_text(driver.read_text(encoding="utf-8"), encoding="utf-8")
    copy.chmod(0o644)
    words = [stage.product.python, str(copy), str(path), str(records), how, *command]
    ran = stage.execute(words)
    ran.keep(newest_record(records))
    return ran
