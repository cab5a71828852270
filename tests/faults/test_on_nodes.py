"""Every fault that real nodes can have: it does its harm when the layers that catch it are off, and they do.

The nodes, pools, seals, guard and prefix index are the shipped ones, under the seam's seeded schedules.
"""

import pytest
import structlog
import torch
from tests.faults.on_nodes import PAGES_LAYERS, TRIALS, WatchedWorld, catchers, leak_of, run
from tests.serving.seam.weather import SLEEPY_WRITERS, Weather

from kvfence.engine.sampling import SamplingParams
from kvfence.faults import CATALOGUE, Harm, Layer, faulty_decisions
from kvfence.kv import FenceLevel
from kvfence.serving.jobs import EndDelta, Job
from kvfence.serving.wire import CloseMessage, PrefillMessage

ON_ENGINE = {name for name, fault in CATALOGUE.items() if fault.runs_on_engine}
STALLS = {name for name in ON_ENGINE if CATALOGUE[name].harm is Harm.STALL}
REUSES = {name for name in ON_ENGINE if CATALOGUE[name].harm is Harm.REUSE}
CAUGHT = [name for name in TRIALS if catchers(name)]
WEATHERS = list(dict.fromkeys(trial.weather for trial in TRIALS.values()))


@pytest.fixture(autouse=True)
def _quiet_and_alone():
    """Nodes have much to say about such days, and their tensors are tiny."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    structlog.reset_defaults()


def test_every_fault_of_the_engine_is_tried_here():
    assert set(TRIALS) | STALLS | REUSES == ON_ENGINE


@pytest.mark.parametrize("name", TRIALS)
def test_with_the_layers_off_it_leaks(name):
    leaks = (leak_of(name, seed)[0] for seed in TRIALS[name].seeds)
    assert any(leak is not None for leak in leaks), "no seed shows it: this is no fault"


@pytest.mark.parametrize("weather", WEATHERS, ids=range(len(WEATHERS)))
def test_with_the_layers_off_and_no_fault_nothing_leaks(weather):
    correct = faulty_decisions([], PAGES_LAYERS)()
    for seed in range(3):
        leak, spoke = run(weather, seed, correct, sealed=False)
        assert leak is None, f"seed {seed}: {leak}"
        assert spoke <= {Layer.ADMISSION}, f"seed {seed}: only what is too long is refused"


@pytest.mark.parametrize("name", CAUGHT)
def test_the_layers_that_catch_it_stop_it(name):
    for seed in TRIALS[name].seeds:
        leak, _ = leak_of(name, seed, on=catchers(name))
        assert leak is None, f"seed {seed}: {leak}"


@pytest.mark.parametrize(("name", "layer"), [(name, layer) for name in CAUGHT for layer in catchers(name)])
def test_each_layer_that_catches_it_speaks(name, layer):
    assert any(layer in leak_of(name, seed, on=(layer,))[1] for seed in TRIALS[name].seeds)


# ------------------------------------------------------------ reuse across domains
PROMPT = tuple(range(1_001, 1_018))


def cached_tokens(world, domain):
    """What a tenant's request of that prompt finds in the prefix cache."""
    router = world._router()
    job = Job("request", domain, domain, PROMPT, 2, SamplingParams(seed=1, temperature=0.0))
    (stream,) = router.node.submit([job])
    for _ in range(100):
        world.run(50, wild=False)
        while not stream._deltas.empty():
            delta = stream._deltas.get_nowait()
            if isinstance(delta, EndDelta):
                return delta.cached_tokens
    raise AssertionError("the request does not end")


def reuse(names):
    """Cached tokens of the first request, of the same tenant's second, and of another tenant's."""
    decisions = faulty_decisions(names)()
    world = WatchedWorld(1, FenceLevel.SEALED, Weather(prefills=1, decodes=1), decisions=decisions)
    try:
        world.run(500, wild=False)
        return [cached_tokens(world, domain) for domain in ("a", "a", "b")]
    finally:
        world.close()


def test_a_tenant_finds_its_own_pages_and_no_others():
    assert reuse([]) == [0, 16, 0]


@pytest.mark.parametrize("name", sorted(REUSES))
def test_another_tenants_pages_are_found_where_domains_are_dropped(name):
    assert reuse([name]) == [0, 16, 16]


# ------------------------------------------------------------ pages that do not come home
def home_after_a_lost_close(names):
    """What is not home after a Prefill was lost, and then the Close of its lease."""
    decisions = faulty_decisions(names)()
    world = WatchedWorld(3, FenceLevel.SEALED, SLEEPY_WRITERS, decisions=decisions)
    lost, post = [], world.bus.post

    def lossy(sender, target, body):
        is_first = isinstance(body, PrefillMessage) and not lost
        is_its_close = isinstance(body, CloseMessage) and lost == [body.lease]
        if is_first or is_its_close:
            lost.append(body.lease)
        else:
            post(sender, target, body)

    world.bus.post = lossy
    try:
        while len(lost) < 2:
            world.run(50)
        return lost[0], world.settle()
    finally:
        world.close()


def test_a_lost_close_is_asked_again():
    assert home_after_a_lost_close([])[1] == []


def test_a_close_that_is_asked_once_leaves_its_pages_in_quarantine():
    lease, left = home_after_a_lost_close(sorted(STALLS))
    assert any(str(lease) in line and "CLOSING" in line for line in left), left


def test_quarantine_is_what_keeps_them_from_being_read():
    assert Layer.QUARANTINE in CATALOGUE["transfer-outlives-pages/close-asked-once"].caught_by
