"""What a tenant may have in flight."""

import pytest

from kvfence.serving.errors import ApiError
from kvfence.serving.limits import CONTEXTS_IN_FLIGHT, Limiter, TenantLimits


def test_requests_in_flight():
    limiter = Limiter(TenantLimits(requests_max=2))
    with limiter.enter("a"), limiter.enter("a"):
        with pytest.raises(ApiError) as caught, limiter.enter("a"):
            pass
        assert (caught.value.status, caught.value.retry_after_s) == (429, 1)
        assert limiter.in_flight("a") == (2, 0)
        with limiter.enter("b"):
            assert limiter.in_flight("b") == (1, 0)
    with limiter.enter("a"):
        pass
    assert limiter.in_flight("a") == (0, 0)
    assert limiter._in_flight == {}


def test_choices_count_as_requests():
    limiter = Limiter(TenantLimits(requests_max=4))
    with limiter.enter("a") as one, limiter.enter("a") as two:
        one.take(requests=2)
        with pytest.raises(ApiError) as caught:
            two.take(requests=1)
        assert caught.value.status == 429
        assert limiter.in_flight("a") == (4, 0)


@pytest.mark.parametrize(("over", "is_admitted"), [(-1, True), (0, True), (1, False)])
def test_tokens_in_flight(over, is_admitted):
    limiter = Limiter(TenantLimits(tokens_max=100))
    with limiter.enter("a") as one, limiter.enter("a") as two:
        one.take(tokens=60)
        if is_admitted:
            two.take(tokens=40 + over)
            assert limiter.in_flight("a") == (2, 100 + over)
            return
        with pytest.raises(ApiError) as caught:
            two.take(tokens=40 + over)
        assert caught.value.status == 429
        assert limiter.in_flight("a") == (2, 60)


def test_tokens_bound_follows_the_limit_of_a_request():
    limiter = Limiter(TenantLimits())
    with limiter.enter("a") as one:
        one.take(tokens=10**9, limit_tokens=None)
    with limiter.enter("a") as one:
        one.take(tokens=CONTEXTS_IN_FLIGHT * 10, limit_tokens=10)


def test_made_tokens_count_and_are_never_refused():
    limiter = Limiter(TenantLimits(tokens_max=2))
    with limiter.enter("a") as one, limiter.enter("a") as two:
        one.take(tokens=1)
        for _ in range(3):
            one.count_token()
        assert limiter.in_flight("a") == (2, 4)
        with pytest.raises(ApiError):
            two.take(tokens=1)
    assert limiter._in_flight == {}


@pytest.mark.parametrize("wanted", [{"requests": 64}, {"tokens": 101}])
def test_what_can_never_be_admitted_is_a_400(wanted):
    limiter = Limiter(TenantLimits(tokens_max=100))
    with limiter.enter("a") as one, pytest.raises(ApiError) as caught:
        one.take(**wanted)
    assert (caught.value.status, caught.value.code) == (400, "tenant_limit_exceeded")


def test_share_is_given_back_after_an_error():
    limiter = Limiter(TenantLimits())
    with pytest.raises(KeyError), limiter.enter("a") as one:
        one.take(requests=3, tokens=9)
        raise KeyError
    assert limiter._in_flight == {}
