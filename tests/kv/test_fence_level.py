from kvfence.kv.fence_level import FenceLevel

WHAT = (
    "checks_manifest",
    "seals_pages",
    "guards_steps",
    "digests_own_pages",
    "sweeps_pages",
    "scrubs_pages",
)


def test_each_level_does_what_the_one_before_it_does_and_more():
    done = [{what for what in WHAT if getattr(level, what)} for level in FenceLevel]
    assert done[0] == set()
    assert done[1] == {"checks_manifest"}
    assert done[2] == {"checks_manifest", "seals_pages", "guards_steps"}
    assert done[3] == set(WHAT)


def test_only_off_needs_the_unsafe_switch():
    assert [level for level in FenceLevel if level.needs_unsafe_switch] == [FenceLevel.OFF]


def test_a_level_is_named_as_on_the_command_line():
    assert FenceLevel("sealed") is FenceLevel.SEALED
