"""The corpus of broken inputs: `broken.json`, what authors write and what they are told.

A case has a *rule*, *rules*, *sets*, a *text* (all of `x.flow.yaml`), *files* or *base64*; *path* is what is
checked. *found* lists what must be said, and nothing else may be: code, place, underlined text, way out.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

from flowproof.diagnostics import Diagnostic, Report
from flowproof.ir.resolve import resolve_suite
from flowproof.source.suite import load

Case = dict[str, Any]
PATH = Path(__file__).parent / "broken.json"


def cases() -> list[Case]:
    found: list[Case] = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def files(case: Case) -> dict[str, bytes]:
    """Return the files of a case."""
    if "base64" in case:
        return {"x.flow.yaml": base64.b64decode(case["base64"])}
    if "files" in case:
        return {name: text.encode() for name, text in case["files"].items()}
    if "text" in case:
        return {"x.flow.yaml": case["text"].encode()}
    sentences = case.get("rules") or [case["rule"]]
    sets = "".join(
        f"    {name}: {json.dumps(value)}\n" for name, value in case.get("sets", {}).items()
    )
    rules = "".join(
        # in single quotes, so that the sentence stands as it is; columns begin behind `    c.a: '`
        f"    c.{'abc'[at]}: '{sentence.replace(chr(39), chr(39) * 2)}'\n"
        for at, sentence in enumerate(sentences)
    )
    head = "name: T\ncontrol:\n  id: c\n"
    return {
        "x.flow.yaml": (head + ("  sets:\n" + sets if sets else "") + "  rules:\n" + rules).encode()
    }


def found(case: Case) -> list[Diagnostic]:
    """Return what is said of a case whose files are written to the current folder."""
    for name, data in files(case).items():
        Path(name).write_bytes(data)
    report = Report()
    suite = load(case.get("path", "x.flow.yaml"), report)
    if suite is not None:
        resolve_suite(suite, report)
    return list(report)


def said(diagnostic: Diagnostic) -> dict[str, object]:
    """Return a diagnostic as the corpus has it."""
    span = diagnostic.span
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "at": None if span is None else f"{os.path.basename(span.file)}:{span.line}:{span.column}",
        "text": None if span is None else span.text,
        "message": diagnostic.message,
        "help": diagnostic.help,
    }
