"""Evidence: nothing of a text is kept, unless it is encrypted to somebody."""

import json
from datetime import date
from pathlib import Path

import pyrage
import pytest

from kvfence.check.asks import Ask
from kvfence.check.evidence import Vault, check_recipient, facts_of, keyed_hash
from kvfence.check.markers import Hit, Marker
from kvfence.check.reply import Reply, Text, Usage
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.protocol.errors import OperatorError

SECRET = "the other customer's words"
SEEN = ForeignMarkerSeen(
    request=7,
    tenant="anna",
    ask=Ask(prompt="x", prompt_tokens=900),
    reply=Reply(
        status=200,
        texts=(Text("content", SECRET),),
        usage=Usage(prompt_tokens=900),
        headers=(("X-Request-Id", "req-1"),),
        total_s=0.25,
    ),
    hits=(Hit(Marker("amber birch", "berta", 64), "content", 50.04, 0.5),),
)


def test_facts_hold_no_text():
    facts = facts_of(SEEN, b"k" * 32)
    assert SECRET not in json.dumps(facts)
    assert "amber" not in json.dumps(facts)
    assert facts["text_characters"] == len(SECRET)
    assert facts["server_request_id"] == "req-1"
    assert facts["marker_share"] == 0.5


def test_equal_texts_show_as_equal_under_one_key_alone():
    assert keyed_hash(SECRET, b"a" * 32) == keyed_hash(SECRET, b"a" * 32)
    assert keyed_hash(SECRET, b"a" * 32) != keyed_hash(SECRET, b"b" * 32)
    assert keyed_hash(SECRET, b"a" * 32) != keyed_hash(SECRET + ".", b"a" * 32)


def test_a_vault_keeps_texts_that_only_the_recipient_reads(tmp_path: Path):
    identity = pyrage.x25519.Identity.generate()
    vault = Vault(folder=tmp_path / "kept", recipient=str(identity.to_public()), keep_until=date(2027, 1, 31))
    path = vault.keep("run1", SEEN)
    sealed = path.read_bytes()
    assert SECRET.encode() not in sealed
    assert path.stat().st_mode & 0o777 == 0o600
    content = json.loads(pyrage.decrypt(sealed, [identity]))
    assert content["texts"] == [{"place": "content", "text": SECRET}]
    assert content["keep_until"] == "2027-01-31"


def test_a_wrong_recipient_is_refused_before_the_run():
    with pytest.raises(OperatorError, match="age-keygen"):
        check_recipient("age1nonsense")


def test_a_right_recipient_is_accepted():
    check_recipient(str(pyrage.x25519.Identity.generate().to_public()))
