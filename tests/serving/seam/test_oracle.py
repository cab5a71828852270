"""The oracle speaks when something is foreign, and is silent when nothing is."""

from collections import Counter, deque
from types import SimpleNamespace

import pytest
from tests.serving.seam.oracle import (
    LAYOUT,
    PAGE_TOKENS,
    Client,
    ForeignRead,
    ProvenanceModel,
    answer_after,
)

from kvfence.engine.attention_decode import DecodeRow
from kvfence.engine.attention_prefill import PrefillChunk
from kvfence.engine.pool_views import pool_views
from kvfence.kv import Pool
from kvfence.protocol.words import End, EndReason, Peer
from kvfence.serving.jobs import EndDelta, TokenDelta

PROMPT = (1_005, 1_006, 1_007, 1_008, 1_009)
PAGES = (2, 0)


@pytest.fixture
def pool():
    pool = Pool.create(LAYOUT, 3)
    yield pool
    pool.close()


@pytest.fixture
def model():
    return ProvenanceModel(Peer("decode-0", 1))


@pytest.fixture
def views(pool, model):
    """The prompt is written, in two chunks."""
    views = pool_views(pool)
    model.prefill(views, [PrefillChunk(PROMPT[:3], 0, PAGES, wants_logits=False)])
    logits = model.prefill(views, [PrefillChunk(PROMPT[3:], 3, PAGES, wants_logits=True)])
    assert logits.argmax(dim=1).tolist() == [answer_after(PROMPT)]
    return views


def step(model, views, token):
    return model.decode(views, [DecodeRow(token, len(PROMPT), PAGES)])


def test_a_row_reads_its_own(model, views):
    token = answer_after(PROMPT)
    assert step(model, views, token).argmax(dim=1).tolist() == [answer_after((*PROMPT, token))]


@pytest.mark.parametrize("other", [(2_005, 2_006, 2_007, 2_008), (1_005, 1_006, 1_107, 1_008)])
def test_a_page_of_another_tenant_or_of_another_context_is_foreign(model, views, other):
    model.prefill(views, [PrefillChunk(other, 0, PAGES[:1], wants_logits=False)])
    with pytest.raises(ForeignRead):
        step(model, views, answer_after(PROMPT))
    with pytest.raises(ForeignRead):
        model.prefill(views, [PrefillChunk((1_001,), PAGE_TOKENS + 1, PAGES, wants_logits=True)])


def test_one_byte_is_seen(pool, model, views):
    pool.payload(PAGES[0])[0] ^= 1
    with pytest.raises(ForeignRead):
        step(model, views, answer_after(PROMPT))


def test_memory_of_nobody_is_foreign(pool, model, views):
    pool.payload(PAGES[1])[:] = 0xFF
    with pytest.raises(ForeignRead, match="nan"):
        step(model, views, answer_after(PROMPT))


def test_a_token_that_does_not_follow_is_foreign(model, views):
    with pytest.raises(ForeignRead, match="does not follow"):
        step(model, views, answer_after(PROMPT[:4]))


def test_what_is_masked_must_be_zero(model, views):
    views.v[0][PAGES[1], -1] = 1.0
    with pytest.raises(ForeignRead, match="not zero"):
        step(model, views, answer_after(PROMPT))


class Stream:
    """Deltas that are there."""

    def __init__(self, *deltas):
        self.job = SimpleNamespace(tokens=PROMPT)
        waiting = deque(deltas)
        self._deltas = SimpleNamespace(empty=lambda: not waiting, get_nowait=waiting.popleft)


END = EndDelta(End(EndReason.LENGTH), len(PROMPT), 1, 0)


def test_a_client_knows_its_answer():
    stats = Counter()
    client = Client(Stream(TokenDelta(answer_after(PROMPT), len(PROMPT)), END), router=None)
    client.take(stats)
    assert client.end == END.end
    assert stats == {"tokens": 1, "end length": 1}


@pytest.mark.parametrize(
    "delta",
    [TokenDelta(answer_after(PROMPT) + 1, len(PROMPT)), TokenDelta(answer_after(PROMPT), len(PROMPT) + 1)],
)
def test_a_client_takes_no_other(delta):
    with pytest.raises(ForeignRead):
        Client(Stream(delta), router=None).take(Counter())


def test_nothing_comes_after_the_end():
    with pytest.raises(AssertionError, match="after the end"):
        Client(Stream(END, END), router=None).take(Counter())
