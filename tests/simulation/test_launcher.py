"""The dead return, the cut are killed, connections are renewed: each once."""

from dataclasses import replace
from random import Random

from kvfence.simulation.agenda import Agenda
from kvfence.simulation.items import Blow
from kvfence.simulation.launcher import Launcher
from kvfence.simulation.neighbours import Neighbours
from kvfence.simulation.swarm import Feature, draw_swarm
from kvfence.world import happenings as h
from tests.simulation.rig import DECODE, PREFILL, a_world


def a_launcher(world, features=frozenset()):
    agenda = Agenda()
    swarm = replace(draw_swarm(0), features=features)
    return Launcher(swarm, world, Neighbours(world), agenda, Random(1)), agenda


def appointments(agenda):
    return [agenda.pop()[1] for _ in range(len(agenda))]


def test_a_dead_process_gets_one_appointment_until_it_was_kept():
    world = a_world()
    launcher, agenda = a_launcher(world)
    world.perform(h.Crash(PREFILL))
    launcher.look()
    launcher.look()
    assert appointments(agenda) == [Blow(h.Restart(PREFILL))]
    launcher.kept(h.Restart(PREFILL))
    launcher.look()
    assert appointments(agenda) == [Blow(h.Restart(PREFILL))]


def test_a_stopped_process_goes_on():
    world = a_world()
    launcher, agenda = a_launcher(world)
    world.perform(h.Pause(PREFILL))
    launcher.after(h.Pause(PREFILL))
    assert appointments(agenda) == [Blow(h.Resume(PREFILL))]


def test_a_living_writer_that_was_cut_is_killed_unless_the_run_spares_it():
    for features, expected in ((frozenset(), [Blow(h.Crash(PREFILL))]), ({Feature.LIVING_CUTS}, [])):
        world = a_world()
        launcher, agenda = a_launcher(world, frozenset(features))
        world.perform(h.Suspect(DECODE, PREFILL))
        world.perform(h.CutDone(DECODE, PREFILL))
        launcher.after(h.CutDone(DECODE, PREFILL))
        assert appointments(agenda) == expected
