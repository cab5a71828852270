"""What the report says of each act: its figures, its drawings, and a few sentences around them."""

import re

from kvfence.replay.acts import Fence, Leak, Numbers
from kvfence.replay.drawing import band_drawing, page_map_drawing, scaled_drawing
from kvfence.replay.fix import Fix
from kvfence.replay.markup import Markup, element, joined, paragraph, table, text
from kvfence.replay.scene import Scene
from kvfence.replay.terminal_views import control_words, late_words, layer_name, no_map_words, trial_reason
from kvfence.replay.trial import Trial

PROMPT_SHOWN = 220  # characters
PAGE_CHOICES = (1, 8, 16, 32, 64, 128)


def numbers_body(numbers: Numbers) -> Markup:
    """Act 1."""
    accounting, sizes = numbers.accounting, numbers.accounting.sizes
    rows = (
        (text(figure.what), text(figure.computed), text("" if figure.published is None else figure.published))
        for figure in numbers.figures
    )
    refusal = (
        []
        if numbers.refusal is None
        else [paragraph("What kvfence serve says to such sizes:"), element("pre", text(numbers.refusal))]
    )
    return joined(
        [
            paragraph(
                "Prefill and decode keep a prompt in pages. Decode's pool held the whole context, prefill's "
                "did not: every prompt in the band between the two was promised and could not be kept. The "
                "figures are computed by kvfence's own page ledger."
            ),
            table(("figure", "computed", "published"), rows),
            band_drawing(sizes.context_tokens, sizes.pool_tokens, accounting.largest_prefill_tokens),
            element("h3", text("What if")),
            _what_if(numbers),
            element("h3", text("Scaled down")),
            paragraph(
                "Tenant A fills a small pool and leaves; nothing is zeroed. Tenant B's prompt is replaced by "
                "a placeholder that writes one slot, and decode reads all of them."
            ),
            scaled_drawing(numbers.scaled),
            *refusal,
        ]
    )


def _what_if(numbers: Numbers) -> Markup:
    sizes = numbers.accounting.sizes
    most = max(4 * sizes.context_tokens, 4 * sizes.pool_tokens)

    def slider(name: str, label: str, value: int) -> list[Markup]:
        return [
            element("label", text(label), for_=name),
            element("input", type="range", id=name, min=1, max=most, step=1, value=value),
            element("output", text(f"{value:,}"), id=f"{name}-out", for_=name),
        ]

    choices = sorted({*PAGE_CHOICES, sizes.page_tokens})
    options = (
        element("option", text(n), value=n, selected="" if n == sizes.page_tokens else None) for n in choices
    )
    controls = [
        *slider("context", "context, tokens", sizes.context_tokens),
        *slider("pool", "prefill pool, tokens", sizes.pool_tokens),
        element("label", text("page, tokens"), for_="page"),
        element("select", *options, id="page"),
        element("output", text(sizes.page_tokens), id="page-out", for_="page"),
    ]
    answers = (
        ("pool as a share of the context", "if-share"),
        ("band", "if-band"),
        ("pool, times the context", "if-factor"),
        ("scaled down to 8 pages, A's slots read for B", "if-scaled"),
        ("kvfence serve", "if-start"),
    )
    rows = ((text(label), element("span", id=name)) for label, name in answers)
    return joined([element("div", *controls, class_="what-if"), table(("what if", ""), rows)])


def leak_body(leak: Leak) -> Markup:
    """Act 2."""
    trial = leak.trial
    return joined(
        [
            paragraph(
                "The fault is on and every layer of the fence is off. Tenant A's prompts, which repeat an "
                f"access code, have been served, and A is gone. Tenant B sends {leak.play.scene.value}."
            ),
            paragraph(leak.play.fault.what),
            element("pre", text(trial.command)),
            element("h3", text("Tenant B asks")),
            element("pre", text(_shortened(trial.answer.ask.prompt))),
            element("h3", text("Tenant B is answered")),
            element("pre", _marked(trial.answer.text, trial.words)),
            _facts(leak),
            *_map_of(trial),
        ]
    )


def _facts(leak: Leak) -> Markup:
    trial, answer = leak.trial, leak.trial.answer
    found = ", ".join(trial.words)
    facts = (
        ("status", f"HTTP {answer.status}, finish reason {answer.finish}"),
        ("usage.prompt_tokens", f"{answer.prompt_tokens or 0:,}; sent were {trial.sent_tokens:,}"),
        ("first token", f"after {_seconds(answer.first_token_seconds)}"),
        _honest_fact(leak),
        (
            "words of A's secret",
            f"{found}: they stand nowhere in B's prompt" if found else "none in the answer",
        ),
        ("x-kvfence-unsafe", answer.unsafe_header or "not there"),
    )
    return _definitions(facts)


def _honest_fact(leak: Leak) -> tuple[str, str]:
    """What shows the leak beside the answer: an honest time, or what came from the cache."""
    trial = leak.trial
    if leak.play.scene is Scene.GUESS:
        return ("cached tokens", f"{trial.reused_tokens:,}, from pages that were computed for tenant A")
    return ("an honest one", f"{trial.honest_seconds:.2f} s, by the pace of tenant A's own prompt here")


def fence_body(fence: Fence) -> Markup:
    """Act 3."""
    rows = (
        (
            text(layer_name(trial)),
            element("strong", text("stopped"), class_="good")
            if trial.is_stopped
            else element("strong", text("NOT stopped"), class_="bad"),
            text(f"HTTP {trial.answer.status} {trial.answer.code or ''}"),
            text(trial_reason(trial)),
            text(f"{trial.foreign_read:,}"),
        )
        for trial in fence.trials
    )
    parts = [
        paragraph(
            "The same prompts, and the fault is still on. Each layer of the fence is alone: all others are "
            "off."
        ),
        table(("layer alone", "", "answer to B", "what it saw", "A's slots read"), rows),
    ]
    if not fence.trials:
        parts.append(paragraph("No layer of a running deployment is expected to see this fault."))
    for trial in fence.trials:
        parts.append(element("h3", text(f"The layer “{layer_name(trial)}” alone")))
        parts.append(element("pre", text(trial.answer.message or trial.answer.text)))
        parts += _map_of(trial)
        parts.append(element("pre", text(trial.command)))
    return joined(parts)


def fix_body(fix: Fix) -> Markup:
    """Act 4."""
    abort, late = fix.abort, late_words(fix)
    rows = (
        (
            text(moment.what),
            text(f"{moment.seconds:.1f}"),
            text(moment.quarantined),
            text(moment.free),
            text(moment.written),
        )
        for moment in abort.moments
    )
    return joined(
        [
            paragraph("No fault is on. A context that the pool cannot hold does not start:"),
            element("pre", text(fix.refused_start)),
            paragraph(
                "With --context fit it starts, and tenant B's prompt is refused before anything is reserved:"
            ),
            element("pre", text(f"HTTP {fix.answer.status}  {fix.answer.message or ''}")),
            paragraph(
                "The control of act 2: tenant A has left the same secret in the same pool, and B sends a "
                "shorter prompt that fits."
            ),
            element("pre", text(f"{control_words(fix.control)}\n\n{fix.control.answer.text}")),
            *_map_of(fix.control),
            element("h3", text("A client leaves in mid-transfer")),
            paragraph(
                "The prefill process is stopped while it writes a long prompt's pages into decode's pool, "
                "and the client leaves. A stopped writer is not a dead one: what it has begun will land. So "
                "decode keeps the pages in quarantine until the writer has closed; time alone frees nothing."
            ),
            element(
                "div",
                table(("moment", "s", "pages quarantined", "pages free", "pages written"), rows),
                class_="scroll",
            ),
            paragraph(f"{late[0].upper()}{late[1:]}."),
            paragraph(
                "Quarantined and free pages are the decode node's own figures; written pages are counted "
                "from the seals in its pool.",
                class_="soft",
            ),
            element("pre", text(fix.command)),
        ]
    )


def _map_of(trial: Trial) -> list[Markup]:
    if trial.page_map is None:
        return [paragraph(no_map_words(trial), class_="soft")]
    return [page_map_drawing(trial.page_map)]


def _definitions(facts: tuple[tuple[str, str], ...]) -> Markup:
    pairs = (joined([element("dt", text(label)), element("dd", text(words))]) for label, words in facts)
    return element("dl", *pairs)


def _marked(answer: str, words: tuple[str, ...]) -> Markup:
    """Return an answer with A's words marked."""
    if not words:
        return text(answer)
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    parts: list[Markup] = []
    end = 0
    for match in pattern.finditer(answer):
        parts += [text(answer[end : match.start()]), element("mark", text(match.group(0)))]
        end = match.end()
    return joined([*parts, text(answer[end:])])


def _shortened(prompt: str) -> str:
    more = len(prompt) - PROMPT_SHOWN
    return prompt if more <= 0 else f"{prompt[:PROMPT_SHOWN]}… ({more:,} characters more of the same)"


def _seconds(seconds: float | None) -> str:
    return "no time: it never came" if seconds is None else f"{seconds:.2f} s"
