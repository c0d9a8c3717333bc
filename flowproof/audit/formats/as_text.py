"""The control map as text, by a template that people may read beside what it prints."""

from __future__ import annotations

import os

import jinja2

from flowproof.audit.claims import claim_words, hits_words
from flowproof.record.model import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.audit.report import Audit

__all__ = ["report_text"]

_TEMPLATES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "templates")


def report_text(audit: Audit, clean: Callable[[str], str]) -> str:
    """Return the control map as lines of text. *clean* makes a word from a file safe to print."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        # Plain text for a terminal or a log: escaping for HTML would garble it. Every value that comes
        # from a file goes through *clean* instead.
        autoescape=False,  # noqa: S701
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: clean(value) if isinstance(value, str) else value,
    )
    number = len(audit.controls)
    return environment.get_template("control-map.txt.j2").render(
        audit=audit,
        controls=f"{number} control{'' if number == 1 else 's'}",
        counts=", ".join(f"{audit.count(verdict)} {verdict.value}" for verdict in Verdict),
        claim_words=claim_words,
        hits_words=hits_words,
    )
