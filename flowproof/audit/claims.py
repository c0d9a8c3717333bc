"""The words for what was shown: a behaviour claim is never worded as a containment claim."""

from __future__ import annotations

from flowproof.record.model import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.record.model import Hits, RuleRow, Through

__all__ = ["claim_words", "hits_words", "through_words"]

_HELD = {
    "containment": "it cannot",
    "behaviour": "it did not",
    "containment+behaviour": "it cannot, and it did not try",
}


def claim_words(rule: RuleRow, through: tuple[Through, ...] = ()) -> str:
    """Return what the run showed of *rule*, in words that claim no more than the evidence does.

    *through*: listeners outside the run that it connected to, on loopback or on a unix socket; they can
    carry traffic on.
    """
    match rule.verdict:
        case None:
            return (
                "reported, nothing is claimed" if rule.claim == "report" else "nothing is claimed"
            )
        case Verdict.PASS:
            words = _HELD[rule.claim]
            return f"{words}, {through_words(through)}" if through else words
        case Verdict.FAIL:
            times = "once" if rule.hits.counted == 1 else f"{rule.hits.counted} times"
            if rule.claim == "behaviour":
                return f"it did, {times}"
            return f"it tried {times}"
        case Verdict.CAPABILITY_ERROR:
            return f"not shown: {rule.explanation}"


def through_words(through: tuple[Through, ...]) -> str:
    """Return the exception that listeners of others make of a claim."""
    places = ", ".join(
        f"{found.protocol} {_place(found.destination, found.port)}" for found in through
    )
    return f"except through these: {places}"


def hits_words(hits: Hits) -> str:
    """Return what a rule met; a refused probe is no attempt, because nothing could follow."""
    counts = (
        (hits.refused, "refused"),
        (hits.probes, "probes refused"),
        (hits.counted, "counted"),
        (hits.observed, "observed"),
        (hits.let_through, "let through"),
    )
    return ", ".join(f"{number} {word}" for number, word in counts if number) or "met nothing"


def _place(destination: str, port: int | None) -> str:
    host = f"[{destination}]" if ":" in destination else destination
    return host if port is None else f"{host}:{port}"
