"""Waiting rows are served in the order in which they came to wait."""

from tests.protocol.rig import Joined

from kvfence.protocol import DecodeState, commands, events


def test_of_two_waiting_rows_the_first_gets_the_first_page():
    rig = Joined(decode_pages=7, spare=0)
    rig.hold("step")
    for _ in range(3):
        rig.submit(4, 4)
    rig.run()
    first, second, third = rig.decode.leases
    while rig.decode.ledger.free_pages:
        rig.feed("d0", events.PageWanted(third))
    rig.feed("d0", events.StepLaunched(70, (third,)))
    for lease in (second, first):  # the order of their ages is not the order of their waiting
        rig.feed("d0", events.PageWanted(lease))
    assert rig.decode.waiting == [second, first]
    assert rig.decode.leases[third].state is DecodeState.CLOSING
    out = rig.feed("d0", events.StepRetired(70))
    assert [command.lease for command in out if isinstance(command, commands.GrantPage)] == [second, first]
