"""Cores are made for their role, with the shipped prefix index where there is one."""

from kvfence.kv.prefix import PrefixIndex
from kvfence.protocol import Decisions, DecodeCore, NoPrefix, PrefillCore, RouterCore
from kvfence.protocol.words import Peer, Role
from kvfence.world import WorldConfig
from kvfence.world.start import make_core, node_name, role_of


def test_each_role_gets_its_core_and_its_pool():
    config = WorldConfig(prefill_pages=3, decode_pages=4, decode_spare_pages=2)
    cores = [make_core(Peer("n", 1), role, config, Decisions()) for role in Role]
    assert [type(core) for core in cores] == [RouterCore, PrefillCore, DecodeCore]
    assert cores[1].ledger.total == 3 and cores[2].ledger.total == 6 and cores[2].ledger.pages == 4


def test_the_prefix_cache_is_a_choice():
    kinds = [
        type(make_core(Peer("n", 1), Role.PREFILL, WorldConfig(has_prefix_cache=cached), Decisions()).prefix)
        for cached in (False, True)
    ]
    assert kinds == [NoPrefix, PrefixIndex]


def test_a_role_is_read_from_a_name():
    assert [role_of(Peer(node_name(role, 12), 1)) for role in Role] == list(Role)
