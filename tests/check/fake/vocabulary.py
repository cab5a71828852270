"""The toy tokenizer: pieces of words, exact in both directions, with ids for whoever asks for them.

A piece is at most seven letters with the space before it, or one other sign. Joined, pieces give back the
text. Ids below `PLAIN` are plain words, so that a prompt of any small ids is a text.
"""

import re

USER, ASSISTANT, SYSTEM, PAD = "<|user|>", "<|assistant|>", "<|system|>", "<|pad|>"
PLAIN = 32_000
_PIECE = re.compile(r"<\|\w+\|>|\s(?=<\|)|\s?\w{1,7}|\s?[^\w\s]|\s")


def pieces_of(text):
    """The text in pieces; joined they are the text again."""
    return _PIECE.findall(text)


class Vocabulary:
    """Ids of pieces, handed out when a piece is first seen."""

    def __init__(self):
        self._ids = {}
        self._pieces = []

    def id_of(self, piece):
        """The id of a piece."""
        if piece not in self._ids:
            self._ids[piece] = PLAIN + len(self._pieces)
            self._pieces.append(piece)
        return self._ids[piece]

    def piece_of(self, number):
        """The piece of an id; a plain word for one that was never handed out."""
        at = number - PLAIN
        return self._pieces[at] if 0 <= at < len(self._pieces) else f" w{number}"
