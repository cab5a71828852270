"""What the blocks of cross-tenant-reuse come to: counts first, then times.

Rules it keeps: a block counts only if every request was answered and the primed prompt was still there after
the probe. What a positive control does not show, its absence elsewhere does not prove.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kvfence.check.known import Need
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Outcome, Sighting
from kvfence.check.scenarios.saying import co_residence
from kvfence.check.statistics import detectable_rate, fisher_greater
from kvfence.check.statistics_pairs import detectable_shift, signed_rank_p, spread_of
from kvfence.report import Severity, Verdict

ALPHA = 0.001  # of each of the two tests
HIT_SHARE = 0.5  # of a prompt: a template's few cached tokens are no hit
MINIMUM_NOISES = 3.0  # the smallest shift that counts, in noise floors of the quiet server
MINIMUM_S = 0.002
BLOCKS_MIN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Five replies: A primes, B probes and asks something cold, B repeats its own, A repeats the primed."""

    prime: Reply
    probe: Reply
    cold: Reply
    own_repeat: Reply
    resident: Reply

    @property
    def replies(self) -> tuple[Reply, ...]:
        """All five."""
        return self.prime, self.probe, self.cold, self.own_repeat, self.resident


def hit_of(reply: Reply) -> bool | None:
    """Whether most of the prompt was cached, by the server's own count. None: no count, or an absurd one."""
    cached, prompt = reply.usage.cached_tokens, reply.usage.prompt_tokens
    if cached is None or not prompt or cached > prompt:
        return None
    return cached >= HIT_SHARE * prompt


def outcome_of(bench: Bench, blocks: Sequence[Block]) -> Outcome:
    """Counts by Fisher; if they show nothing, times by randomisation."""
    whole = [block for block in blocks if all(reply.is_answer for reply in block.replies)]
    notes = [f"{len(blocks) - len(whole)} of {len(blocks)} blocks had a request that failed"]
    notes = notes if len(whole) < len(blocks) else []
    absurd = sum(_is_absurd(reply) for block in whole for reply in block.replies)
    if absurd:
        notes.append(f"{absurd} cached counts were above their prompt's own, and were not used")
    if len(whole) < BLOCKS_MIN:
        why = f"only {len(whole)} of {len(blocks)} blocks were answered in full"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, notes=tuple(notes))
    counted = _by_counts(bench, whole) if Need.CACHED_TOKENS in bench.known.has else None
    if counted is not None and counted.verdict is Verdict.EXPOSED:
        return counted
    timed = _by_times(bench, whole)
    if timed.verdict is Verdict.INCONCLUSIVE and counted is not None:
        notes.append(f"timing: {timed.why}")
        return _with(counted, notes)
    if counted is not None:
        notes.append(f"cached counts: {counted.why}")
    return _with(timed, notes)


def _by_counts(bench: Bench, blocks: Sequence[Block]) -> Outcome | None:
    """None where the positive control never hits: there is nothing to see in counts."""
    usable = [block for block in blocks if hit_of(block.resident) and hit_of(block.cold) is not None]
    probes = [hit for block in usable if (hit := hit_of(block.probe)) is not None]
    if len(probes) < BLOCKS_MIN:
        return None
    cold = [bool(hit_of(block.cold)) for block in usable]
    own = [bool(hit_of(block.own_repeat)) for block in usable]
    p_value = fisher_greater(sum(probes), len(probes), sum(cold), len(cold))
    said = (
        f"{sum(probes)} of {len(probes)} prompts that only the other tenant had sent were cached for this "
        f"one, and {sum(cold)} of {len(cold)} that nobody had sent"
    )
    if p_value <= ALPHA:
        evidence: dict[str, str | int | float | bool | None] = {
            "probes": len(probes),
            "probe_hits": sum(probes),
            "cold_prompts": len(cold),
            "cold_hits": sum(cold),
            "own_repeats": len(own),
            "own_hits": sum(own),
            "p_value": p_value,
        }
        return _exposed(bench, "KVF207", Severity.HIGH, said, evidence, p_value)
    return Outcome(
        verdict=Verdict.NO_EVIDENCE,
        why=f"{said}; {sum(own)} of {len(own)} of its own repeats were",
        opportunities=len(probes),
        sensitivity=sum(own) / len(own) or None,
        co_residence=co_residence(bench.known),
        p_value=p_value,
        smallest_effect=f"{detectable_rate(len(probes), alpha=ALPHA):.0%} of prompts that are cached across",
    )


def _by_times(bench: Bench, blocks: Sequence[Block]) -> Outcome:
    minimum_s = max(MINIMUM_S, MINIMUM_NOISES * bench.known.noise_floor_s)
    # Positive control first: a cache whose own hits do not show in time shows nobody's.
    own = _gains(blocks, lambda block: (block.cold, block.own_repeat))
    residency = _gains(blocks, lambda block: (block.cold, block.resident))
    own_p = signed_rank_p(own, bench.random, minimum=minimum_s)
    if own_p > ALPHA:
        why = (
            f"a tenant's own repeat was not faster by {minimum_s * 1e3:.1f} ms or more: this cache, if there "
            "is one, does not show in time"
        )
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    resident = [block for block, gain in zip(blocks, residency, strict=True) if gain > 0]
    gains = _gains(resident, lambda block: (block.cold, block.probe))
    if len(gains) < BLOCKS_MIN:
        why = f"only {len(gains)} primed prompts were still there after their probe"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    p_value = signed_rank_p(gains, bench.random, minimum=minimum_s)
    middle_s = sorted(gains)[len(gains) // 2]
    said = (
        f"prompts that only the other tenant had sent were answered {middle_s * 1e3:.1f} ms sooner than cold "
        f"ones (median of {len(gains)}), where a tenant's own repeats gain "
        f"{sorted(own)[len(own) // 2] * 1e3:.1f} ms"
    )
    shift_s = minimum_s + detectable_shift(spread_of(gains), len(gains), alpha=ALPHA)
    effect = f"a shift of {shift_s * 1e3:.1f} ms"
    if p_value <= ALPHA:
        evidence: dict[str, str | int | float | bool | None] = {
            "pairs": len(gains),
            "median_gain_ms": round(middle_s * 1e3, 3),
            "own_gain_ms": round(sorted(own)[len(own) // 2] * 1e3, 3),
            "minimum_ms": round(minimum_s * 1e3, 3),
            "p_value": p_value,
        }
        return _exposed(bench, "KVF208", Severity.MEDIUM, said, evidence, p_value, effect)
    return Outcome(
        verdict=Verdict.NO_EVIDENCE,
        why=said,
        opportunities=len(gains),
        sensitivity=sum(gain > minimum_s for gain in own) / len(own) or None,
        co_residence=co_residence(bench.known),
        p_value=p_value,
        smallest_effect=effect,
    )


def _gains(blocks: Sequence[Block], pair: Callable[[Block], tuple[Reply, Reply]]) -> list[float]:
    """How much sooner the second of a pair was answered than the first, block by block."""
    gains = []
    for block in blocks:
        slow, fast = pair(block)
        gains.append((slow.ttft_s or slow.total_s) - (fast.ttft_s or fast.total_s))
    return gains


def _exposed(
    bench: Bench,
    code: str,
    severity: Severity,
    said: str,
    evidence: dict[str, str | int | float | bool | None],
    p_value: float,
    effect: str | None = None,
) -> Outcome:
    sighting = Sighting(
        code=code,
        severity=severity,
        what=said,
        subject_key="reuse",
        evidence=evidence,
        rival="the two credentials are one tenant, or the cache is meant to be shared",
        smallest_effect=effect,
    )
    return Outcome(
        verdict=Verdict.EXPOSED,
        why=said,
        co_residence=co_residence(bench.known),
        p_value=p_value,
        smallest_effect=effect,
        sightings=(sighting,),
    )


def _is_absurd(reply: Reply) -> bool:
    cached, prompt = reply.usage.cached_tokens, reply.usage.prompt_tokens
    return cached is not None and prompt is not None and cached > prompt


def _with(outcome: Outcome, notes: Sequence[str]) -> Outcome:
    return replace(outcome, notes=(*outcome.notes, *notes))
