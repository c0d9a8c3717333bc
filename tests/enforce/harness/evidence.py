"""What a run left behind, read the way an auditor would: from the files, not through the product."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["CAPABILITY", "FAIL", "PASS", "Record", "newest_record"]

PASS, FAIL, CAPABILITY = "pass", "fail", "capability-error"


class Record:
    """One record folder: ``record.json`` and the lanes beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text = (folder / "record.json").read_text(encoding="utf-8")
        self.data: dict[str, object] = json.loads(self.text)

    def lane(self, name: str) -> list[dict[str, object]]:
        """Return the events of a lane, [] where the run did not engage it."""
        path = self.folder / f"{name}.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def _list(self, of: object, key: str) -> list[dict[str, object]]:
        assert isinstance(of, dict)
        found = of.get(key, [])
        assert isinstance(found, list)
        return found

    @property
    def controls(self) -> list[dict[str, object]]:
        """The controls of the record."""
        return self._list(self.data, "controls")

    @property
    def through(self) -> list[dict[str, object]]:
        """The listeners outside of the run that it connected to."""
        return self._list(self.data, "through")

    @property
    def verdict(self) -> str:
        """The verdict of the record's one control."""
        (control,) = self.controls
        return str(control["verdict"])

    @property
    def complete(self) -> bool:
        """Whether the record says that it is finished."""
        run = self.data["run"]
        assert isinstance(run, dict)
        return run["complete"] is True

    def rule(self, rule: str) -> dict[str, object]:
        """Return the row of one rule."""
        rows = [row for row in self._list(self.data, "rules") if row["id"] == rule]
        assert rows, f"no rule {rule} in the record"
        return rows[0]

    def mentions(self, code: str) -> bool:
        """Say whether a typed code stands in the record, as a whole value."""
        return f'"{code}"' in self.text

    def denied(self, destination: str) -> list[dict[str, object]]:
        """Return the refused events of the connect lane at *destination* (``address:port`` or a name)."""
        return [e for e in self.refused if self._place(e) == destination]

    @property
    def refused(self) -> list[dict[str, object]]:
        """The refused events of the connect lane."""
        return [e for e in self.lane("connect") if e.get("handling") == "refused"]

    @staticmethod
    def _place(event: dict[str, object]) -> str:
        host, port = str(event.get("destination", "")), event.get("port")
        if port is None or host.endswith(f":{port}"):
            return host
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def newest_record(where: Path) -> Record | None:
    """Return the newest record under *where*, None where there is none."""
    if not where.is_dir():
        return None
    found = sorted(where.rglob("record.json"), key=lambda path: path.stat().st_mtime_ns)
    return Record(found[-1].parent) if found else None
