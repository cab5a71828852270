"""A scripted server that repeats a word when it is told to, and mixes requests up when that is wanted."""

import re

from tests.check.scripted_bench import answered

TOLD = re.compile(r"(?:Repeat this word and nothing else|The word is): (\w+)")


def word_of(sent):
    """The word that a prompt asks for: told, gone on with, or echoed."""
    found = TOLD.search(sent.text)
    return found[1] if found else sent.text.split()[-1]


def obedient(sent):
    """Says the word, whatever else is in flight."""
    return answered(word_of(sent).capitalize() + ".", completion_tokens=3)


def deaf(_sent):
    """Follows nothing."""
    return answered("I'm sorry for any misunderstanding, but", completion_tokens=8)


class Mixing:
    """Gives every `every`th answer among several in flight the word of another request."""

    def __init__(self, every=3, say=lambda own, other: other):
        self.every, self.say, self.count, self.bench = every, say, 0, None

    def __call__(self, sent):
        others = self.bench.in_flight_with(sent)
        self.count += bool(others)
        if others and self.count % self.every == 0:
            return answered(self.say(word_of(sent), word_of(others[0])), completion_tokens=3)
        return obedient(sent)
