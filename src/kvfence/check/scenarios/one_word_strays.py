"""Whose words are the strays? Words that another request was given, or words that nobody was ever given.

A model that makes words up does not know which words of the list this run has sent: those were drawn at
random. So among the different words that came back to requests for others, as many belong to one half of the
list as to the other, but for chance; the hypergeometric tail says how much chance that takes. A server that
hands on what other requests sent, one at a time too, gives back sent words alone.

Rules it keeps: each word counts once, however often it comes, because a model that is stuck on a word says it
to everybody. Requests go one at a time.
"""

from dataclasses import dataclass

from kvfence.check.scenario import Bench
from kvfence.check.scenarios.saying import WORDS, Sayer, asks_cost, heard_of
from kvfence.check.statistics import fisher_greater
from kvfence.report import Cost

SENT_WORDS = len(WORDS) // 2
ROUNDS = 2
P_MAX = 1e-3  # above it nothing is said at all; the run corrects what is below


@dataclass(frozen=True, slots=True)
class Strays:
    """How many different words came back that were sent, and that never were; of how many each."""

    sent: int
    never_sent: int
    sent_of: int
    never_sent_of: int

    @property
    def p_value(self) -> float:
        """The chance that so many of the strays were sent, if sending had nothing to do with it."""
        return fisher_greater(self.sent, self.sent_of, self.never_sent, self.never_sent_of)

    @property
    def needed(self) -> int:
        """The fewest words that were sent, and none other, that do not come back by chance."""
        return next(
            count
            for count in range(1, self.sent_of + 1)
            if Strays(count, 0, self.sent_of, self.never_sent_of).p_value <= P_MAX
        )

    def __str__(self) -> str:
        return (
            f"asked one at a time, {self.sent} of {self.sent_of} words that other requests were given came "
            f"back, and {self.never_sent} of {self.never_sent_of} that nobody was given"
        )


def strays_cost() -> Cost:
    """What `whose_words` uses at most."""
    return asks_cost(ROUNDS * SENT_WORDS)


async def whose_words(bench: Bench, sayer: Sayer) -> Strays:
    """Send half of the list's words, those that were sent before among them; see which half comes back."""
    rest = sorted(set(WORDS) - sayer.sent)
    sent = [*sorted(sayer.sent), *bench.random.sample(rest, max(SENT_WORDS - len(sayer.sent), 0))]
    strays: set[str] = set()
    for _ in range(ROUNDS):
        bench.random.shuffle(sent)
        for word in sent:
            reply = await bench.ask(bench.tenants[0], sayer.form.ask(word, mark="control"))
            strays |= heard_of(reply, WORDS) - {word}
    return Strays(
        sent=len(strays & set(sent)),
        never_sent=len(strays - set(sent)),
        sent_of=len(sent),
        never_sent_of=len(WORDS) - len(sent),
    )
