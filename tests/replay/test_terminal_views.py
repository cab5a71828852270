"""What the terminal shows of each act, as plain text."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from kvfence.replay.acts import Act, Fence, Leak, Played
from kvfence.replay.page_map import Owner
from kvfence.replay.scene import Play
from kvfence.replay.secret import Secret
from kvfence.replay.terminal_views import OWNER_LETTERS, OWNER_STYLES, map_view, view_of
from tests.replay.samples import LEAKING_TRIAL, MANIFEST_TRIAL, PLAY, page_map, played

SHOWN = {
    Act.NUMBERS: """\
  figure                                     computed    published
  context window, tokens                           64
  prefill pool, tokens                             40
  pool as a share of the context              62.50 %
  band of prompts between the two, tokens          24
  fixed pool, tokens                              124
  fixed pool, times the context                  1.94
  band with the fixed pool, tokens                  0

  scaled down: decode reads 32 slots for B, of which 31 (96.9 %) are A's: A1, A2, A3, A4, A5, A6, …
  BAAA AAAA AAAA AAAA AAAA AAAA AAAA AAAA
  kvfence serve says: the context of 64 tokens is larger than the prefill pool of 40 tokens: prompts""",
    Act.LEAK: """\
            fault  rejected-continues/incident
           status  HTTP 200
    prompt_tokens  60 reported, 60 sent
      first token  0.25 s; computing such a prompt takes 3.00 s here
           answer  -The access code of the vault is zanzibar quokka marmalade.
  A's words in it  zanzibar, quokka, marmalade
  for B decode reads 11 slots: 6 with A's bytes, 3 B's own, 2 empty
  B..A AAAA ABB.""",
    Act.FENCE: """\
  layer alone    stopped    answer      why                        A's slots read
  admission      yes        HTTP 400    context_length_exceeded    0
  manifest       yes        HTTP 500    manifest_tokens            0
  nothing is read; of the 12 slots reserved: 6 with A's bytes, 3 B's own, 3 empty""",
    Act.FIX: """\
           start  kvfence: error: the context is larger
          status  HTTP 400
         message  at most 1328 tokens
  shorter prompt  40 tokens: HTTP 200, first token after 2.50 s; A's words in the answer: none; A's
                  slots read: 0

  a client leaves in mid-transfer                     s    quarantined    free    written
  the writer stands still, and the client leaves    0.5              0      60         10
  decode has put the pages into quarantine          0.6             80      60         10
  time has passed, and has freed nothing            2.1             80      60         10
  the writer has closed, and the pages are free     2.4              0     140         12
  pages that landed after the client had left: 2; the bound is 4 (batches of 2 pages); of 79 pages,""",
}


def shown(result, act):
    output = io.StringIO()
    Console(file=output, width=100, color_system=None, highlight=False).print(view_of(result, act))
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


@pytest.mark.parametrize("act", list(Act))
def test_what_is_shown_of_an_act(act):
    assert shown(played(), act).startswith(SHOWN[act])


def test_a_fault_without_layers_says_so():
    assert "no layer of a running deployment" in shown(replace(played(), fence=Fence(PLAY, ())), Act.FENCE)


def test_what_was_not_stopped_is_loud():
    through = Fence(PLAY, (replace(MANIFEST_TRIAL, reasons=("seal_torn",)),))
    assert "NO" in shown(replace(played(), fence=through), Act.FENCE)


def test_a_guess_is_shown_by_what_came_from_the_cache():
    guess = Play.of("salt-dropped/domain-ignored", Secret())
    seen = shown(Played(guess, leak=Leak(guess, replace(LEAKING_TRIAL, reused_tokens=784))), Act.LEAK)
    assert "784 tokens of the prompt were served from the cache" in seen
    assert "computing such a prompt" not in seen


def test_a_trial_without_a_map_says_so():
    trial = replace(LEAKING_TRIAL, page_map=None, words=())
    seen = shown(Played(PLAY, leak=Leak(PLAY, trial)), Act.LEAK)
    assert "no page map" in seen
    assert "none" in seen


def test_a_large_map_has_a_letter_a_page():
    small = page_map(11)
    large = replace(small, pages=small.pages * 60)
    assert map_view(small).plain == "  B..A AAAA ABB."
    lines = map_view(large).plain.splitlines()
    assert set("".join(lines)) == {" ", "A"}
    assert sum(line.count("A") for line in lines) == 180


def test_every_owner_has_a_letter_and_a_style():
    assert set(OWNER_LETTERS) == set(OWNER_STYLES) == set(Owner)


def test_an_act_that_was_not_played():
    assert shown(Played(PLAY), Act.FIX) == "not played"
