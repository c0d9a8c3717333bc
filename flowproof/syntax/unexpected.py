"""What an author is told about a word that does not fit where it stands."""

from __future__ import annotations

import re

from flowproof.syntax.driver import BAD, END

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowproof.diagnostics import Report, Span
    from flowproof.source.documents import Text
    from flowproof.syntax.driver import Tables, Token

__all__ = ["describe", "keywords", "means_everything", "misspelt", "report"]

_DESTINATION = {"WORD", "STRING", "BRACKETED", "UNIX", "ANYTHING"}
# As a sentence has them
_ORDER = (
    *("ALLOW", "OBSERVE", "EXPECT", "DENY", "NEVER", "NO"),
    *("CONNECT", "LISTEN", "DELETE", "RENAME", "TRUNCATE", "WRITE", "DESTROY", "EXECUTE", "CALL"),
    *("TCP", "UDP", "TO", "ON", "UNDER", "AT", "ANYWHERE", "ELSE", "EXCEPT", "BECAUSE"),
)
_CUT = re.compile(r"[ \t]+#")


# Words of other languages and tools, and what says here what they say there
_SAID_ELSEWHERE = {
    word: keyword
    for keyword, words in {
        "deny": "forbid block refuse reject disallow drop prohibit prevent do don't no",
        "allow": "permit accept let grant enable",
        "observe": "watch log record monitor audit",
        "connect": "egress reach send dial talk access",
        "listen": "bind serve accept ingress",
        "delete": "remove unlink rm erase",
        "rename": "move mv",
        "write": "create modify edit append",
        "execute": "exec run spawn start",
        "call": "use invoke tool",
        "under": "in from below inside within of on",
        "anywhere": "everywhere all any everything anything",
        "except": "unless but without excluding save",
        "because": "reason since",
        "else": "otherwise",
        ",": "and or ;",
    }.items()
    for word in words.split()
}


_EVERYTHING = {"all", "any", "anything", "everything"}


def means_everything(token: Token, expected: Iterable[str]) -> bool:
    """Say whether *token* stands for every destination in the place of an action, a `to` or an `on`."""
    return token.text.lower() in _EVERYTHING and not {"CONNECT", "TO", "ON"}.isdisjoint(expected)


def keywords(tables: Tables, expected: Iterable[str]) -> dict[str, str]:
    """Return the words that would fit, each with its terminal."""
    fit = set(expected)
    return {word: kind for word, kind in tables.keywords.items() if kind in fit}


def describe(tables: Tables, expected: Iterable[str], before: list[Token]) -> str:
    """Return what would fit, in the words of an author: "`tcp`, `udp` or `to`"."""
    fit = set(expected)
    spelt = {kind: word for word, kind in tables.keywords.items()}
    names: list[str] = []
    if fit >= _DESTINATION:
        names.append("a destination")
        fit -= {*_DESTINATION, "LOOPBACK", "PRIVATE", "LINK_LOCAL", "METADATA", "MULTICAST"}
    elif fit >= {"WORD", "STRING"}:
        last = next((t.type for t in reversed(before) if t.type in {"CALL", "UNDER", "AT"}), "")
        names.append("a tool" if last == "CALL" else "a path")
        fit -= {"WORD", "STRING"}
    elif "WORD" in fit:
        names.append("a port")
    elif "STRING" in fit:
        names.append("a reason in double quotes")
    ranked = sorted(fit, key=lambda kind: (_ORDER.index(kind) if kind in _ORDER else 99, kind))
    names += [f"`{spelt[kind]}`" for kind in ranked if kind in spelt]
    names += [f"`{sign}`" for kind, sign in (("COMMA", ","), ("RBRACE", "}")) if kind in fit]
    if END in fit:
        names.append("the end")
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "nothing"


def misspelt(token: Token, meant: str, text: Text, found: Report) -> None:
    """Report a keyword that is nearly one."""
    found.error(
        "FP302",
        f"`{token.text}` is no word of the language here",
        text.at(token.start, token.end),
        f"did you mean `{meant}`?",
    )


def report(
    tables: Tables,
    token: Token,
    expected: list[str],
    before: list[Token],
    *,
    text: Text,
    found: Report,
) -> None:
    """Report *token*, which stands where one of *expected* should, behind the words *before* it."""
    place = text.at(token.start, token.end)
    fitting = describe(tables, expected, before)
    cut = _cut_by_comment(text)
    if token.type == END:
        what = "the sentence ends" if before else "there is nothing"
        where = f"{what} where {fitting} is expected"
        found.error("FP303", where, place, cut or _ending(before, expected))
    elif token.type == BAD:
        _bad(token, place, cut, found)
    else:
        way = _way_out(tables, token, expected, before)
        found.error("FP301", f"`{token.text}` where {fitting} is expected", place, way)


def _ending(before: list[Token], expected: list[str]) -> str | None:
    if not before and "ANYTHING" in expected:
        return "name a destination, as in `api.example.com:443`"
    if not before:
        return "a sentence is a verb and an action: `deny connect to anything else`"
    if before[-1].type == "COMMA":
        return "take the last comma away, or add what it announces"
    return None


def _bad(token: Token, place: Span, cut: str | None, found: Report) -> None:
    if token.text[0] == '"' and token.text.count('"') == 1:
        way = cut or 'end it with `"`; inside it, `\\"` is a quote and `\\\\` a backslash'
        found.error("FP305", f"`{token.text}` opens a quote that is not closed", place, way)
    elif token.text[0] == '"' and "\\" in token.text:
        way = '`\\"` and `\\\\` are the only escapes'
        found.error("FP305", f"`{token.text}` holds an escape that is none", place, way)
    elif '"' in token.text:
        way = "put a space between the words, or the whole word in quotes"
        found.error("FP304", f"`{token.text}` has a quote in the middle of a word", place, way)
    else:
        sign = next((c for c in token.text if c in "{}[]?"), token.text[0])
        message = f"`{token.text}` holds `{sign}`, which stands only in quotes"
        found.error("FP304", message, place, _closed(token.text) or f'write `"{token.text}"`')


def _closed(text: str) -> str | None:
    """Return what an open bracket or brace was meant to be, where that can be told."""
    if text[0] == "[" and ":" in text and "]" not in text:
        return "close the bracket: `[2001:db8::1]:443`"
    if "${" in text and "}" not in text:
        return "close the variable: `${NAME}`"
    if ":[" in text:
        return "several ports stand in braces: `:{80,443}`"
    return None


def _way_out(tables: Tables, token: Token, expected: list[str], before: list[Token]) -> str | None:
    if means_everything(token, expected):
        verb = " ".join(word.text for word in before)
        way = "connect to" if "CONNECT" in expected else "to" if "TO" in expected else "on"
        return f"write `{verb} {way} anything`"
    meant = _SAID_ELSEWHERE.get(token.text.lower())
    if meant == "," and "COMMA" in expected:
        return "a list is parted by commas"
    if meant in keywords(tables, expected):
        return f"the word here is `{meant}`"
    if token.type == "COMMA" and before and before[-1].type == "COMMA":
        return "take one of the commas away"
    if token.type == "COMMA" and before and before[-1].type == "UDP":
        return "write `tcp, udp`, or neither: a rule without a protocol is about both"
    if token.type in {"EXCEPT", "BECAUSE"} and any(t.type == token.type for t in before):
        return f"a sentence has one `{token.text}`; what belongs to it is parted by commas"
    if token.type == "TO" and "ON" in expected:
        return "write `listen on …`"
    if token.type in {"TCP", "UDP"} and "ON" in expected:
        return "`listen` is about tcp and takes no protocol"
    if token.type in {"TCP", "UDP"} and any(t.type == "CONNECT" for t in before):
        return f"a protocol stands in front of `to`: `connect {token.text} to`"
    if "TCP" in expected and "UDP" in expected and token.type == "WORD":
        if any(sign in token.text for sign in ".:@$*/"):
            return f"write `to {token.text}`"
        return "the protocols are `tcp` and `udp`; without one of them a rule is about both"
    if "WORD" in expected and token.text in tables.keywords:
        return f'`{token.text}` is a keyword; as a name or a path it is quoted: `"{token.text}"`'
    if expected == ["STRING"]:
        return 'write the reason as `because "…"`'
    if "WORD" in expected and token.type == "BRACKETED":
        return f'what holds `[` is quoted: `"{token.text}"`'
    if token.type == "WORD" and END in expected:
        return "a word that holds a space is quoted; a list is parted by commas"
    return None


def _cut_by_comment(text: Text) -> str | None:
    """Return the advice for a plain scalar that a comment ended, or None."""
    source, end = text.span.source.text, text.span.end
    if text.span.start < end and source[text.span.start] in "\"'|>":
        return None
    if _CUT.match(source, end):
        return "quote this: ` #` begins a comment, and what follows it is not read"
    return None
