"""A run is drawn from its seed alone; features go on and off; worlds are consistent."""

from kvfence.simulation.swarm import Feature, draw_swarm

SWARMS = [draw_swarm(seed) for seed in range(300)]


def test_a_seed_draws_the_same_run_again():
    assert draw_swarm(7) == draw_swarm(7)
    assert draw_swarm(7) != draw_swarm(8)


def test_each_feature_is_on_in_some_runs_and_off_in_others():
    for feature in Feature:
        on = sum(feature in swarm.features for swarm in SWARMS)
        assert 20 < on < 280, feature


def test_some_runs_are_calm():
    assert any(not swarm.gusts and not swarm.loss and not swarm.failure for swarm in SWARMS)


def test_weather_is_drawn_only_where_its_feature_is_on():
    for swarm in SWARMS:
        assert {feature for feature, _ in swarm.gusts} <= swarm.features
        assert bool(swarm.loss) == (Feature.LOSS in swarm.features)
        assert bool(swarm.failure) == (Feature.FAILED_WRITES in swarm.features)


def test_the_three_cores_agree_about_the_page_size():
    for swarm in SWARMS:
        world = swarm.world
        sizes = {world.router.page_tokens, world.prefill.page_tokens, world.decode.page_tokens}
        assert sizes == {world.page_tokens}
