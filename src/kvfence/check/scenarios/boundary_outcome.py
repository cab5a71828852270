"""From judged probes to the outcome of `boundary`.

Rules it keeps: a band is claimed when two of the probes agree; one alone is inconclusive. A refusal below the
advertised context is exposed, never a leak. "No evidence" says how sure a placeholder would have been seen.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kvfence.check.reply import Reply
from kvfence.check.scenario import Outcome, Sighting
from kvfence.check.scenarios.boundary_measure import limit_in, numbers_in
from kvfence.check.scenarios.boundary_reading import SHARE_UNREAD_MAX, Judged, Reading, Yardstick
from kvfence.report import Severity, Verdict

AGREE_MIN = 2
_CLAIMS = {
    Reading.UNREAD: ("KVF203", Severity.CRITICAL, Verdict.UNREAD, "nobody had read it"),
    Reading.TRUNCATED: ("KVF204", Severity.HIGH, Verdict.TRUNCATED, "a part of it was dropped"),
}
_RIVALS = {
    Reading.UNREAD: (
        "a cache that already held the prompt would be as fast; every prompt began with words of its own, "
        "and such a cache would have let it be recalled"
    ),
    Reading.TRUNCATED: "a model that forgets one end of a long prompt; usage or time speak against it",
}
_RIVAL_OF_TIME = (
    "a cache that already held the prompt, or prefill that is far faster for long prompts than for short "
    "ones; every prompt began with words of its own, and recall could not be tested with this model"
)


def outcome_of(probes: Sequence[tuple[Judged, Reply]], sent: int, context: int, yard: Yardstick) -> Outcome:
    """What the probes come to, the last one first where it ended the series."""
    readings = Counter(judged.reading for judged, _ in probes)
    last, reply = probes[-1]
    if last.reading is Reading.HUNG:
        return hang(last, sent, context)
    claimed = max((Reading.UNREAD, Reading.TRUNCATED), key=lambda reading: readings[reading])
    both = readings[Reading.UNREAD] + readings[Reading.TRUNCATED]
    if both >= AGREE_MIN:
        return _band(claimed, [one for one, _ in probes if one.reading is claimed], probes, sent, yard)
    if both:
        why = f"{both} of {len(probes)} prompts of {sent:,} tokens looked {claimed}, which did not come again"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, opportunities=len(probes))
    if last.reading is Reading.REFUSED:
        return refusal(reply, sent, context, last.why)
    if last.reading is Reading.UNCLEAR:
        why = f"the answer to {sent:,} tokens says nothing: {last.why}"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, opportunities=len(probes))
    return _calm([one for one, _ in probes], sent, context, yard)


def unconfirmed(probes: Sequence[tuple[Judged, Reply]], sent: int, yard: Yardstick, why: str) -> Outcome:
    """What was seen once, where `why` says that nothing could confirm it: suspect, and never forgotten."""
    last, _ = probes[-1]
    band = _band(last.reading, [last], probes, sent, yard)
    what = f"{band.why}; not confirmed: {why}"
    sightings = tuple(
        replace(sighting, severity=Severity.MEDIUM, what=what, subject_key=f"{last.reading}-unconfirmed")
        for sighting in band.sightings
    )
    return replace(band, verdict=Verdict.SUSPECT, why=what, sightings=sightings)


def refusal(reply: Reply, sent: int, context: int, why: str) -> Outcome:
    """The advertised context is not accepted: honest, and still the gap in which the incident lived."""
    limit = limit_in(reply.message, sent)
    if context in numbers_in(reply.message or "") and limit is None:
        text = f"{sent:,} tokens were refused with the advertised context as limit: our count was too low"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=text)
    what = f"a context of {context:,} tokens is advertised, and a prompt of {sent:,} is refused ({why})"
    sighting = Sighting(
        code="KVF209",
        severity=Severity.MEDIUM,
        what=what,
        subject_key="advertised-above-accepted",
        evidence={
            "advertised_tokens": context,
            "sent_tokens": sent,
            "status": reply.status,
            "limit_in_message": limit,
        },
        rival="a limit of this key or plan, below what the model can do",
    )
    return Outcome(verdict=Verdict.EXPOSED, why=what, opportunities=1, sightings=(sighting,))


def hang(last: Judged, sent: int, context: int) -> Outcome:
    """A prompt that nothing came back to, or that ended the server."""
    what = f"a prompt of {sent:,} tokens of an advertised context of {context:,} got {last.why}"
    sighting = Sighting(
        code="KVF205",
        severity=Severity.HIGH,
        what=what,
        subject_key="hang",
        evidence={"sent_tokens": sent, "waited_s": round(last.first_s, 1)},
        rival="a server that is only slow; its clock promised an answer in a fifth of that time",
    )
    return Outcome(verdict=Verdict.HANG, why=what, opportunities=1, sightings=(sighting,))


def _band(
    claimed: Reading,
    agreeing: list[Judged],
    probes: Sequence[tuple[Judged, Reply]],
    sent: int,
    yard: Yardstick,
) -> Outcome:
    code, severity, verdict, what_happened = _CLAIMS[claimed]
    fastest = min(agreeing, key=lambda judged: judged.first_s)
    by_time_alone = claimed is Reading.UNREAD and fastest.recall is None and not _says_usage(fastest)
    what = (
        f"{len(agreeing)} of {len(probes)} prompts of {sent:,} tokens were answered with status 200 although "
        f"{what_happened}: {fastest.why} ({fastest.first_s:.2f} s; reading takes at least "
        f"{yard.clock.floor_s(sent):.2f} s)"
    )
    sighting = Sighting(
        code=code,
        severity=severity,
        what=what,
        subject_key=f"{claimed}-band",
        evidence={
            "sent_tokens": sent,
            "probes": len(probes),
            "agreeing": len(agreeing),
            "first_s": round(fastest.first_s, 3),
            "floor_s": round(yard.clock.floor_s(sent), 3),
            "predicted_s": round(yard.clock.predict_s(sent), 3),
            "usage_share": None if fastest.usage_share is None else round(fastest.usage_share, 4),
            "recalled": None if fastest.recall is None else str(fastest.recall),
            "recall_form": "none: this model recalls nothing" if yard.form is None else yard.form.value,
            "control_tokens": yard.clock.points[-1][0],
            "control_s": round(yard.control_s, 3),
        },
        rival=_RIVAL_OF_TIME if by_time_alone else _RIVALS[claimed],
        smallest_effect=_smallest(sent, yard),
    )
    return Outcome(
        verdict=verdict,
        why=what,
        opportunities=len(probes),
        co_residence=1.0,
        sensitivity=1.0,
        smallest_effect=_smallest(sent, yard),
        sightings=(sighting,),
    )


def _calm(probes: list[Judged], sent: int, context: int, yard: Yardstick) -> Outcome:
    why = f"a prompt of {sent:,} tokens, {context - sent:,} below the context, was read: {probes[-1].why}"
    notes = tuple(f"{sent:,} tokens: {one.why}" for one in probes if one.is_fast or "forgotten" in one.why)
    is_measured = yard.form is not None or yard.clock.can_tell(sent, yard.noise_s)
    return Outcome(
        verdict=Verdict.NO_EVIDENCE,
        why=why,
        opportunities=len(probes),
        # A prompt is its own opportunity: nobody else's pages have to be met for it to be left unread.
        co_residence=1.0,
        sensitivity=1.0 if is_measured else None,
        smallest_effect=_smallest(sent, yard),
        notes=notes,
    )


def _says_usage(judged: Judged) -> bool:
    """Whether the server's own count says that it read a placeholder."""
    return judged.usage_share is not None and judged.usage_share <= SHARE_UNREAD_MAX


def _smallest(sent: int, yard: Yardstick) -> str:
    form = "recall alone" if not yard.clock.can_tell(sent, yard.noise_s) else "time and recall"
    if yard.form is None:
        form = "time alone"
    floor = f"{yard.clock.floor_s(sent):.2f} s"
    return f"a band that begins below {sent:,} tokens, by {form}: unread in under {floor}"
