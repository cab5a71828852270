"""The scaled-down incident: 127 of 128 slots, A1 to A6 first."""

from kvfence.replay.scaled import scaled_leak


def test_decode_reads_127_of_128_slots_of_another_tenant():
    leak = scaled_leak(16)
    assert (len(leak.read), len(leak.foreign)) == (128, 127)
    assert f"{leak.foreign_percent:.1f}" == "99.2"
    assert [written.name for written in leak.foreign[:6]] == ["A1", "A2", "A3", "A4", "A5", "A6"]
    assert leak.read[0].name == "B0"


def test_other_page_sizes_leave_one_slot_too():
    leak = scaled_leak(4, pages=2)
    assert [written.name for written in leak.read] == ["B0", "A1", "A2", "A3", "A4", "A5", "A6", "A7"]
