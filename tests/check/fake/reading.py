"""What a text asks for, as the toy model reads it: the last request in it, and what it takes to answer.

It knows a few forms of request ("Reply ONLY: X", "repeat: X", questions for code words, a choice of letters,
counting) and finds what was told earlier in the same text, whoever told it.
"""

import re

from tests.check.fake.vocabulary import pieces_of

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_QUOTED = r"[\"'`“«]?(?P<x>[^\n\"`”»<]+)"
_FILLER = r"(?:\s+(?:with|the|this|these|following|word|words|text|line|sentence|phrase|code|and|nothing|else|one|single|exact|exactly|verbatim))*"
SAY_ONLY = re.compile(
    r"\b(?:reply|answer|respond|say|output|print|write|return|type)\s+(?:with\s+)?(?:only|just|exactly|nothing but)"
    + _FILLER
    + r"\s*[:\-]?\s*"
    + _QUOTED,
    re.IGNORECASE,
)
REPEAT = re.compile(r"\b(?:repeat|copy|echo)\b[^:\n]{0,100}:\s*" + _QUOTED, re.IGNORECASE)
_SECRET = (
    r"(?:code ?words?|pass ?words?|pass ?phrases?|markers?|needles?|secrets?|secret words?|keys?|tokens?)"
)
ASK = re.compile(
    r"\b(?:what|which|quote|list|give|tell|name|recall|state)\b[^?\n.:]{0,120}?\b"
    + _SECRET
    + r"\b[^\n]{0,80}",
    re.IGNORECASE,
)
TOLD = re.compile(
    r"\b"
    + _SECRET
    + r"\b[^.\n:=?]{0,60}?(?:\bis\b|:|=)\s*[\"'`“]?(?P<x>[^\s\"'`”.,;:<?]+(?:[ -][a-z0-9]+){0,15})",
    re.IGNORECASE,
)
OPTION = re.compile(r"(?:^|\n)\s*\(?(?P<letter>[A-Z])[).:]\s*(?P<x>[^\n<]+)")
COUNT = re.compile(r"\bcount\w*\s+(?:up\s+)?from\s+(?P<a>\d+)(?:\s+to\s+(?P<b>\d+))?", re.IGNORECASE)
TAIL_PIECES, COPIED_PIECES = 12, 64
NEAR = 12_000  # a request is looked for near the end first


def wish_of(text):
    """The answer that the last request in the text asks for; None when there is none."""
    near = text[-NEAR:]
    found = _last_request(near)
    if found is None and len(text) > NEAR:
        found = _last_request(text)
    if found is None:
        return None
    kind, match = found
    if kind == "ask":
        return _recall(text, near)
    if kind == "count":
        return _count(match)
    return match["x"].strip().rstrip(".")


def continuation(text):
    """What followed the last place where the text read as it does at its end: up to `COPIED_PIECES` of it."""
    text = text.rstrip()
    tail = pieces_of(text[-200:])[-TAIL_PIECES:]
    for count in range(len(tail), 0, -1):
        end = "".join(tail[-count:])
        if not (count >= 4 or (count >= 2 and end.endswith(":")) or text.endswith(end * 3)):
            continue
        at = text.rfind(end, 0, len(text) - 1)
        if at >= 0:
            # What is said goes on as the text does, over and over where the text ends.
            following = text[at + len(end) :]
            said = pieces_of(following[:2_000] * (1 + 400 // max(1, len(following))))[:COPIED_PIECES]
            return said[: next((n for n, piece in enumerate(said) if "<|" in piece), len(said))]
    return []


def _last_request(text):
    found = None
    for kind, pattern in (("say", SAY_ONLY), ("repeat", REPEAT), ("ask", ASK), ("count", COUNT)):
        for match in pattern.finditer(text):
            if found is None or match.start() > found[1].start():
                found = (kind, match)
    return found


def _recall(text, near):
    options = list(OPTION.finditer(near[-3_000:]))
    if len(options) >= 2:
        before = text[: len(text) - min(len(near), 3_000) + options[0].start()]
        for option in options:
            if option["x"].strip() in before:
                return option["letter"]
        return options[0]["letter"]
    told = list(dict.fromkeys(match["x"].strip() for match in TOLD.finditer(text)))
    return (" " if all(word.isalpha() for word in told) else ", ").join(told) or None


def _count(match):
    first = int(match["a"])
    last = int(match["b"] or first + 400)
    return ", ".join(str(number) for number in range(first, min(last, first + 2_000) + 1))
