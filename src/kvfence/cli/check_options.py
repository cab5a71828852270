"""What the flags of `kvfence check` mean: budgets, prices and replay ids, from words to values."""

from dataclasses import dataclass
from difflib import get_close_matches

from kvfence.check.budget import Limits, Price
from kvfence.protocol.errors import OperatorError

LIMITS = {"requests": int, "tokens": int, "bytes": int, "seconds": float, "money": float}


def limits_of(words: list[str], price: Price | None) -> Limits:
    """Limits from `NAME=VALUE` words; 2e6 is a number too. Raises OperatorError."""
    values: dict[str, float] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if name not in LIMITS:
            close = get_close_matches(name, LIMITS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(LIMITS)}"
            raise OperatorError(f"--budget {word}: there is no limit {name!r}: {hint}")
        try:
            values[name] = LIMITS[name](float(text))
        except (ValueError, OverflowError):
            values[name] = 0
        if not equals or not values[name] > 0:
            raise OperatorError(f"--budget {word}: give a number above 0, as in --budget {name}=500")
    if "money" in values and price is None:
        raise OperatorError(
            "--budget money=… needs the price of tokens: --price PROMPT/COMPLETION, for a million each"
        )
    return Limits(**values)  # type: ignore[arg-type]


def price_of(words: str | None) -> Price | None:
    """The price from `PROMPT/COMPLETION`, for a million tokens each. Raises OperatorError."""
    if words is None:
        return None
    parts = words.split("/")
    if len(parts) == 2 and all(_is_price(part) for part in parts):
        return Price(prompt=float(parts[0]), completion=float(parts[1]))
    raise OperatorError(
        f"--price {words}: give two numbers, as in --price 0.15/0.60 (money for a million tokens)"
    )


def _is_price(word: str) -> bool:
    try:
        return 0 <= float(word) < float("inf")
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a finding's replay id holds."""

    seed: int
    scenario: str
    profile: str


def replay_of(words: str) -> Replay:
    """Read a replay id, `SEED.SCENARIO.PROFILE`. Raises OperatorError."""
    parts = words.split(".")
    seed = parts[0].partition("r")[0]
    if len(parts) != 3 or not seed.isdecimal():
        raise OperatorError(f"--replay {words}: give the id that a finding shows, such as 7.boundary.quick")
    return Replay(seed=int(seed), scenario=parts[1], profile=parts[2])
