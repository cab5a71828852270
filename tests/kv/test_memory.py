from kvfence.kv.memory import available_memory_bytes


def test_the_machine_says_something_here():
    room = available_memory_bytes()
    assert room is not None
    assert room > 0


def test_the_smaller_of_machine_and_container_counts(tmp_path):
    meminfo, limit, used = tmp_path / "meminfo", tmp_path / "max", tmp_path / "current"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:       1000 kB\n")
    used.write_text("24000\n")
    limit.write_text("524000\n")
    assert available_memory_bytes(meminfo, ((limit, used),)) == 500_000
    limit.write_text("99999999\n")
    assert available_memory_bytes(meminfo, ((limit, used),)) == 1_024_000
    limit.write_text("max\n")
    assert available_memory_bytes(meminfo, ((limit, used),)) == 1_024_000
    limit.write_text("5\n")
    assert available_memory_bytes(meminfo, ((limit, used),)) == 0


def test_a_system_that_says_nothing_is_none(tmp_path):
    missing = tmp_path / "missing"
    assert available_memory_bytes(missing, ((missing, missing),)) is None
    empty = tmp_path / "empty"
    empty.write_text("MemTotal: 9 kB\n")
    assert available_memory_bytes(empty, ()) is None
