"""Results of every act, made by hand, for tests of what is drawn of them."""

from dataclasses import replace

from kvfence.faults import Layer
from kvfence.replay.acts import Fence, Leak, Numbers, Played, count_numbers
from kvfence.replay.client import Answer, Ask
from kvfence.replay.fix import Abort, Fix, Moment
from kvfence.replay.numbers import Sizes
from kvfence.replay.page_map import MapPage, Origin, Owner, PageMap
from kvfence.replay.scene import INCIDENT, Play
from kvfence.replay.secret import Secret
from kvfence.replay.trial import Trial

PLAY = Play.of(INCIDENT, Secret())
PROMPT = "Please write a short story about <a river>. "
LEAKED = "-The access code of the vault is zanzibar quokka marmalade."
ASK = Ask("tenant-b", PROMPT * 20, 8)
HONEST = Answer(
    Ask("tenant-a", "x", 1), 200, "ok", 2.0, first_token_seconds=2.0, prompt_tokens=40, completion_tokens=1
)


def page_map(read_slots: int) -> PageMap:
    """Three pages of four slots: B's placeholder and two empty slots, then A's, then B's own answer."""
    own, other, empty = Owner.READER, Owner.OTHER, Owner.NOBODY
    pages = (
        MapPage(7, (own, empty, empty, other)),
        MapPage(3, (other, other, other, other)),
        MapPage(9, (other, own, own, empty)),
    )
    return PageMap(pages, read_slots, Origin.POOL)


LEAKING_TRIAL = Trial(
    alone=None,
    command="kvfence serve --context 2048",
    sent_tokens=60,
    honest=HONEST,
    answer=Answer(
        ASK,
        200,
        LEAKED,
        1.5,
        first_token_seconds=0.25,
        finish="length",
        prompt_tokens=60,
        completion_tokens=8,
        unsafe_header=INCIDENT,
    ),
    words=("zanzibar", "quokka", "marmalade"),
    reused_tokens=0,
    reasons=(),
    page_map=page_map(11),
)
MANIFEST_TRIAL = Trial(
    alone=Layer.MANIFEST,
    command="kvfence serve --unsafe-without seal",
    sent_tokens=60,
    honest=HONEST,
    answer=Answer(
        ASK, 500, "", 0.3, code="integrity", message="The KV pages failed verification (manifest_tokens)."
    ),
    words=(),
    reused_tokens=0,
    reasons=("manifest_tokens",),
    page_map=page_map(0),
)
ADMISSION_TRIAL = Trial(
    alone=Layer.ADMISSION,
    command="kvfence serve --context fit",
    sent_tokens=60,
    honest=HONEST,
    answer=Answer(ASK, 400, "", 0.1, code="context_length_exceeded", message="at most 1328 tokens"),
    words=(),
    reused_tokens=0,
    reasons=(),
    page_map=None,
)
ABORT = Abort(
    prompt_pages=79,
    batch_pages=2,
    moments=(
        Moment("the writer stands still, and the client leaves", 0.5, 0, 60, 10),
        Moment("decode has put the pages into quarantine", 0.6, 80, 60, 10),
        Moment("time has passed, and has freed nothing", 2.1, 80, 60, 10),
        Moment("the writer has closed, and the pages are free", 2.4, 0, 140, 12),
    ),
    served_after=True,
)
OWN_PAGES = (MapPage(4, (Owner.READER,) * 4), MapPage(5, (Owner.READER,) * 2 + (Owner.NOBODY,) * 2))
CONTROL_TRIAL = replace(
    LEAKING_TRIAL,
    sent_tokens=40,
    answer=replace(
        LEAKING_TRIAL.answer, text="A river ran by a town.", first_token_seconds=2.5, unsafe_header=None
    ),
    words=(),
    page_map=PageMap(OWN_PAGES, 6, Origin.POOL),
)
FIX = Fix(
    "kvfence: error: the context is larger",
    "kvfence serve --context fit",
    ADMISSION_TRIAL.answer,
    CONTROL_TRIAL,
    ABORT,
)


def numbers() -> Numbers:
    """Act 1 with small sizes: quick, and nothing beside them."""
    return count_numbers(Sizes(context_tokens=64, pool_tokens=40, page_tokens=4))


def played() -> Played:
    """All four acts."""
    return Played(
        PLAY,
        numbers=numbers(),
        leak=Leak(PLAY, LEAKING_TRIAL),
        fence=Fence(PLAY, (ADMISSION_TRIAL, MANIFEST_TRIAL)),
        fix=FIX,
    )


def answered(trial: Trial, **changes) -> Trial:
    """The trial with another answer."""
    return replace(trial, answer=replace(trial.answer, **changes))
