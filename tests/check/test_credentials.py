"""Secrets stay where they are, tokens live as long as they may, and every error says what to do."""

import asyncio
import base64
import pickle
import sys

import pytest
from tests.check.virtual import run

from kvfence.check.credentials import (
    Headed,
    Key,
    NoCredential,
    Redactor,
    Secret,
    TokenCommand,
    from_environment,
    named_header,
    run_command,
    secret_of,
)
from kvfence.protocol.errors import OperatorError

KEY = 'sk-very/secret"+key'


class Issuer:
    """A command that gives token-1, token-2, … and can be made to fail."""

    def __init__(self) -> None:
        self.runs = 0
        self.answer: tuple[int, bytes] | None = None

    async def __call__(self, argv):
        self.runs += 1
        await asyncio.sleep(1)
        return self.answer or (0, f"token-{self.runs}\n".encode())


def command(issuer, redactor=None, **settings):
    return TokenCommand(("mint", "--for", "b"), redactor or Redactor(), run=issuer, **settings)


def bearer(headed: Headed) -> str:
    return headed.headers["Authorization"]


def test_nothing_that_holds_a_secret_shows_it():
    secret = Secret(KEY)
    headed = run(Key(secret).headed())
    shown = f"{secret} {secret!r} {Key(secret)!r} {headed!r} {[secret]} {command(Issuer())!r}"
    assert KEY not in shown
    assert "very" not in shown
    assert "--for" not in shown
    assert secret.reveal() == KEY
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret)


def test_where_a_key_travels():
    assert run(Key(Secret(KEY)).headed()).headers == {"Authorization": f"Bearer {KEY}"}
    assert run(Key(Secret(KEY), named_header("api-key")).headed()).headers == {"api-key": KEY}
    assert named_header("AUTHORIZATION") == named_header("Authorization")
    assert run(NoCredential().headed()).headers == {}
    with pytest.raises(OperatorError, match="no name of an HTTP header"):
        named_header("a b")


def test_a_redactor_takes_out_every_spelling():
    redactor = Redactor()
    redactor.learn(Secret(KEY))
    redactor.learn(Secret("sk-very"))
    encoded = base64.b64encode(KEY.encode()).decode()
    for spelling in (KEY, "sk-very%2Fsecret%22%2Bkey", 'sk-very/secret\\"+key', encoded, "sk-very"):
        assert (
            redactor.redact(f"it said {spelling}, twice {spelling}") == "it said [redacted], twice [redacted]"
        )


def test_a_redactor_leaves_the_rest():
    redactor = Redactor()
    assert redactor.redact("a text") == "a text"
    redactor.learn(Secret("none"))
    assert redactor.redact("none of it") == "none of it", "a placeholder is no secret"


def test_a_token_is_used_until_its_time_is_over():
    async def go():
        issuer = Issuer()
        credential = command(issuer, ttl_s=60)
        first = [bearer(await credential.headed()) for _ in range(3)]
        await asyncio.sleep(61)
        return first, bearer(await credential.headed()), issuer.runs

    assert run(go()) == (["Bearer token-1"] * 3, "Bearer token-2", 2)


def test_a_refused_token_is_replaced_and_a_late_refusal_is_not_heard():
    async def go():
        issuer = Issuer()
        credential = command(issuer)
        old = await credential.headed()
        credential.refused(old.issue)
        new = await credential.headed()
        credential.refused(old.issue)
        return bearer(new), bearer(await credential.headed()), issuer.runs

    assert run(go()) == ("Bearer token-2", "Bearer token-2", 2)


def test_requests_that_start_together_share_one_run_of_the_command():
    async def go():
        issuer = Issuer()
        credential = command(issuer)
        found = await asyncio.gather(*(credential.headed() for _ in range(5)))
        return {bearer(one) for one in found}, issuer.runs

    assert run(go()) == ({"Bearer token-1"}, 1)


def test_a_token_is_known_to_the_redactor():
    redactor = Redactor()
    run(command(Issuer(), redactor).headed())
    assert redactor.redact("your token-1 is bad") == "your [redacted] is bad"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            (3, b"half a token"),
            "ended with 3; what it printed is withheld, since it may hold a secret: run it",
        ),
        ((0, b""), "the output of 'mint' is empty"),
        ((0, b"two\nlines"), "the output of 'mint' is no key"),
    ],
)
def test_a_command_without_a_token_says_why(answer, said):
    issuer = Issuer()
    issuer.answer = answer
    with pytest.raises(OperatorError) as caught:
        run(command(issuer).headed())
    assert said in str(caught.value)
    assert "half a token" not in str(caught.value), "what it printed may be a key"


def test_a_real_command_runs_without_a_shell():
    program = "import sys; print(sys.argv[1]); print('noise', file=sys.stderr)"
    found = asyncio.run(run_command((sys.executable, "-c", program, "$HOME; echo")))
    assert found == (0, b"$HOME; echo\n")
    with pytest.raises(OperatorError, match=r"does not start \(No such file"):
        asyncio.run(run_command(("/nowhere/mint",)))


def test_what_a_command_complains_about_is_withheld(capfd):
    """It may repeat a key that nobody knows yet, a refresh token say."""
    program = "import sys; print('out-s3cret'); sys.exit('refused: refresh-s3cret')"
    with pytest.raises(OperatorError, match="ended with 1; what it printed is withheld") as caught:
        asyncio.run(TokenCommand((sys.executable, "-c", program), Redactor()).headed())
    printed = capfd.readouterr()
    assert "s3cret" not in f"{caught.value} {caught.value.__cause__} {printed.out} {printed.err}"


def test_a_command_that_waits_for_ever_is_ended(monkeypatch):
    monkeypatch.setattr("kvfence.check.credentials.COMMAND_S_MAX", 0.05)
    with pytest.raises(OperatorError, match="did not end within"):
        asyncio.run(run_command((sys.executable, "-c", "import threading; threading.Event().wait()")))


def test_a_key_comes_from_the_environment():
    assert from_environment("KEY_A", {"KEY_A": f" {KEY}\n"}).reveal() == KEY
    with pytest.raises(OperatorError, match="no environment variable KEY_B; export"):
        from_environment("KEY_B", {})
    with pytest.raises(OperatorError, match="variable KEY_A is empty"):
        from_environment("KEY_A", {"KEY_A": ""})


def test_a_key_given_in_place_of_its_name_is_not_repeated():
    with pytest.raises(OperatorError) as caught:
        from_environment("sk-abcdef", {})
    assert "sk-abcdef" not in str(caught.value)


@pytest.mark.parametrize("text", ["a\nb", "ключ", "a\x00b", "k" * 20_000])
def test_what_is_no_key_is_refused_unseen(text):
    with pytest.raises(OperatorError) as caught:
        secret_of(text, "it")
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    "echo",
    [
        "SK-TENANT-A-0123456789-ABCDEFGH",
        "s k - t e n a n t - a - 0 1 2 3 4 5 6 7 8 9 - a b c d e f g h",
        "sk-tenant-a-…",
        "http://sk-tenant-a-0123456789-abcdefgh.example/",
    ],
)
def test_a_key_that_is_echoed_in_another_form_goes_too(echo):
    redactor = Redactor()
    redactor.learn(Secret("sk-tenant-a-0123456789-abcdefgh"))
    said = redactor.redact(f"wrong key: {echo}")
    assert "tenant" not in said.casefold().replace(" ", "")
    assert "0123" not in said.replace(" ", "")
    assert said.startswith("wrong key: ")
