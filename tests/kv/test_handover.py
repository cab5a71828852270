import pytest
from tests.kv.pools import LAYOUT, PAGE_TOKENS, Handover, fill, key_of, lease_of, write_sealed

from kvfence.kv.handover import HandoverResult, verify_handover
from kvfence.kv.own_pages import open_page
from kvfence.kv.seal import stamp_unwritten
from kvfence.kv.sealer import PageSealer
from kvfence.kv.sweep import scrub_pages
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import IntegrityReason, LeaseId, PageRef

PAGE_EXACT, PARTIAL = 3 * PAGE_TOKENS, 3 * PAGE_TOKENS - 1
prompts = pytest.mark.parametrize("tokens", [PAGE_EXACT, PARTIAL])


def verify(handover: Handover, **changes) -> HandoverResult:
    facts = {"lease": handover.lease, "key": handover.key, "refs": handover.refs, "tokens": handover.tokens}
    return verify_handover(handover.target, page_tokens=PAGE_TOKENS, **{**facts, **changes})


@pytest.mark.parametrize(
    "tokens", [1, PAGE_TOKENS - 1, PAGE_TOKENS, PAGE_TOKENS + 1, PARTIAL, PAGE_EXACT, 100]
)
def test_a_whole_hand_over_verifies(tokens):
    handover = Handover(tokens)
    handover.write()
    assert verify(handover) == HandoverResult(None, (), verified_pages=len(handover.refs))


@prompts
@pytest.mark.parametrize("missing", [[0], [1], [2], [1, 2], [0, 1, 2]])
def test_pages_that_were_never_written_fail_without_poison(tokens, missing):
    handover = Handover(tokens)
    handover.write([ordinal for ordinal in range(3) if ordinal not in missing])
    result = verify(handover)
    assert result == HandoverResult(IntegrityReason.SEAL_UNWRITTEN, (), verified_pages=3 - len(missing))


def test_the_incident_one_page_written_of_all_that_were_reserved():
    """Tenant A's bytes stand in the pages that B reserved; B's writer wrote one page and said complete."""
    handover = Handover(8 * PAGE_TOKENS)
    for ordinal, ref in enumerate(handover.refs):
        write_sealed(handover.target, lease_of(99), PageRef(ref.page, 0), ordinal, seed=ordinal)
    stamp_unwritten(handover.target, handover.lease, handover.refs)
    handover.write([0])
    assert verify(handover).reason is IntegrityReason.SEAL_UNWRITTEN
    assert verify(handover).verified_pages == 1


@prompts
@pytest.mark.parametrize(
    ("lease", "epoch_step", "ordinal"),
    [
        pytest.param(lease_of(2), 0, 1, id="lease"),
        pytest.param(LeaseId(6, 1), 0, 1, id="incarnation"),
        pytest.param(lease_of(1), -1, 1, id="older epoch"),
        pytest.param(lease_of(1), 1, 1, id="newer epoch"),
        pytest.param(lease_of(1), 0, 0, id="ordinal"),
        pytest.param(lease_of(1), 0, 2, id="next ordinal"),
    ],
)
def test_the_intact_seal_of_another_page_is_foreign_and_poisons(tokens, lease, epoch_step, ordinal):
    handover = Handover(tokens)
    handover.write()
    ref = handover.refs[1]
    write_sealed(handover.target, lease, PageRef(ref.page, ref.epoch + epoch_step), ordinal, key=handover.key)
    result = verify(handover)
    assert result == HandoverResult(IntegrityReason.SEAL_FOREIGN, (ref.page,), verified_pages=2)


@prompts
def test_the_right_page_in_the_wrong_place_is_foreign(tokens):
    handover = Handover(tokens)
    handover.write()
    first, second = (handover.target.page(ref.page) for ref in handover.refs[:2])
    first_bytes = first.copy()
    first[:] = second
    second[:] = first_bytes
    result = verify(handover)
    assert result.reason is IntegrityReason.SEAL_FOREIGN
    assert set(result.poisoned) == {ref.page for ref in handover.refs[:2]}


def test_stamps_that_are_not_this_lease_s_unwritten_are_foreign():
    handover = Handover(4 * PAGE_TOKENS)
    handover.write()
    target, refs = handover.target, handover.refs
    stamp_unwritten(target, lease_of(2), [refs[0]])  # another lease's
    stamp_unwritten(target, handover.lease, [refs[1]], first_ordinal=3)  # another ordinal's
    open_page(target, handover.lease, refs[2], 2)  # not written by the writer
    scrub_pages(target, [refs[3].page])  # no stamp at all
    result = verify(handover)
    assert result == HandoverResult(
        IntegrityReason.SEAL_FOREIGN, tuple(ref.page for ref in refs), verified_pages=0
    )


@prompts
@pytest.mark.parametrize("ordinal", [0, 1, 2])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_changed_byte_anywhere_in_the_payload_is_torn(tokens, ordinal, place):
    handover = Handover(tokens)
    handover.write()
    page = handover.refs[ordinal].page
    payload = handover.target.payload(page)
    payload[{"first": 0, "middle": payload.size // 2, "last": -1}[place]] ^= 1
    assert verify(handover) == HandoverResult(IntegrityReason.SEAL_TORN, (page,), verified_pages=2)


def test_junk_in_the_unused_slots_is_torn():
    handover = Handover(PARTIAL)
    handover.write()
    region = handover.target.layout.regions[-1]
    page = handover.refs[-1].page
    handover.target.payload(page)[region.offset + (PAGE_TOKENS - 1) * region.slot_bytes] = 1
    assert verify(handover).poisoned == (page,)


@pytest.mark.parametrize("valid", range(1, PAGE_TOKENS))
@pytest.mark.parametrize("zeroes", [True, False])
def test_what_a_writer_left_in_the_unused_slots_is_torn_though_its_digest_is_right(valid, zeroes):
    handover = Handover(2 * PAGE_TOKENS + valid)
    handover.sealer = PageSealer(handover.source, zeroes=zeroes)
    for ordinal, source in enumerate(handover.sources):
        fill(handover.source, source.page, seed=ordinal)
        handover.sealer.seal_page(source, handover.valid_tokens(ordinal))
    handover.write()
    page = handover.refs[-1].page
    torn = HandoverResult(IntegrityReason.SEAL_TORN, (page,), verified_pages=2)
    assert verify(handover) == (HandoverResult(None, (), verified_pages=3) if zeroes else torn)


@pytest.mark.parametrize("region", range(len(LAYOUT.regions)))
@pytest.mark.parametrize("is_last_byte", [False, True])
def test_one_byte_that_is_not_zero_in_any_region_is_seen(region, is_last_byte):
    handover = Handover(PAGE_TOKENS + 1)
    handover.sealer = PageSealer(handover.source, zeroes=False)
    first, last = handover.sources
    handover.sealer.seal_page(first, PAGE_TOKENS)
    payload, place = handover.source.payload(last.page), LAYOUT.regions[region]
    payload[:] = 0
    payload[place.offset + (place.region_bytes - 1 if is_last_byte else place.slot_bytes)] = 1
    handover.sealer.seal_page(last, 1)
    handover.write()
    assert verify(handover).reason is IntegrityReason.SEAL_TORN


@prompts
@pytest.mark.parametrize("byte", range(32, 64))
def test_a_changed_byte_in_valid_tokens_digest_or_tag_is_torn(tokens, byte):
    handover = Handover(tokens)
    handover.write()
    page = handover.refs[1].page
    handover.target.trailer(page)[byte] ^= 1
    assert verify(handover) == HandoverResult(IntegrityReason.SEAL_TORN, (page,), verified_pages=2)


@pytest.mark.parametrize("byte", range(32))
def test_a_changed_byte_in_the_header_is_foreign(byte):
    handover = Handover(PAGE_EXACT)
    handover.write()
    page = handover.refs[1].page
    handover.target.trailer(page)[byte] ^= 0x10
    assert verify(handover) == HandoverResult(IntegrityReason.SEAL_FOREIGN, (page,), verified_pages=2)


@prompts
def test_a_trailer_without_its_payload_is_torn(tokens):
    """The trailer overtook the payload, which still is what stood there before."""
    handover = Handover(tokens)
    handover.write()
    page = handover.refs[0].page
    half = handover.target.payload(page)[: handover.target.layout.payload_bytes // 2]
    half[:] = 170
    assert verify(handover).reason is IntegrityReason.SEAL_TORN
    assert verify(handover).poisoned == (page,)


@prompts
def test_a_seal_under_another_key_is_torn(tokens):
    handover = Handover(tokens)
    handover.write()
    result = verify(handover, key=key_of(lease_of(2)))
    assert result.reason is IntegrityReason.SEAL_TORN
    assert result.poisoned == tuple(ref.page for ref in handover.refs)
    assert result.verified_pages == 0


@pytest.mark.parametrize("claimed", [PARTIAL - 1, PARTIAL + 1])
def test_a_page_sealed_for_other_valid_tokens_than_claimed_is_torn(claimed):
    handover = Handover(PARTIAL)
    handover.write()
    result = verify(handover, tokens=claimed)
    assert result == HandoverResult(IntegrityReason.SEAL_TORN, (handover.refs[-1].page,), verified_pages=2)


def test_of_several_faults_the_gravest_is_named_and_every_bad_page_is_poisoned():
    handover = Handover(4 * PAGE_TOKENS)
    handover.write([0, 1, 2])
    handover.target.payload(handover.refs[1].page)[5] ^= 1
    assert verify(handover).reason is IntegrityReason.SEAL_TORN
    write_sealed(handover.target, lease_of(9), handover.refs[2], 2)
    result = verify(handover)
    assert result.reason is IntegrityReason.SEAL_FOREIGN
    assert result.poisoned == (handover.refs[1].page, handover.refs[2].page)
    assert result.verified_pages == 1


def test_verification_changes_nothing():
    handover = Handover(PARTIAL)
    handover.write([0])
    before = handover.target.buffer.copy()
    verify(handover)
    assert (handover.target.buffer == before).all()


def test_pages_and_tokens_must_fit_each_other():
    handover = Handover(PARTIAL)
    with pytest.raises(InvariantError, match="do not hold"):
        verify(handover, tokens=PAGE_EXACT + 1)
    with pytest.raises(InvariantError, match="at least one"):
        verify(handover, refs=(), tokens=0)
    with pytest.raises(InvariantError, match="layout"):
        verify_handover(
            handover.target, handover.lease, handover.key, handover.refs, handover.tokens, PAGE_TOKENS + 1
        )
