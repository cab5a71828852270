"""Profiles: what they may say, and errors that name the line."""

import re
from pathlib import Path

import pytest
import trustme
from tests.check.virtual import run

from kvfence.check.asks import Endpoint
from kvfence.check.budget import Limits, Price
from kvfence.check.credentials import Redactor, TokenCommand
from kvfence.check.profile_file import read_profile
from kvfence.check.profile_file_fields import ProfileError
from kvfence.check.scenario import Hazard
from kvfence.protocol.errors import OperatorError
from kvfence.report import Place

ENVIRON = {
    "KEY_A": "key-of-tenant-a",
    "KEY_B": "key-of-tenant-b",
    "COOKIE": "chocolate-chips",
    "PROXY": "http://me:hunter22@proxy:3128",
}

FULL = """\
# A deployment with two tenants.
[[target]]
name = "production"
url = "https://llm.example.com/v1"
model = "big"
answers_as = "big-v2"
endpoint = "completions"
two_tenants = true
allow = ["heavy"]
ca_file = "ca.pem"
proxy = "http://proxy:3128"
nodes = ["http://10.0.0.1:30000", "http://10.0.0.2:30000/v1"]
hook = ["./restart-prefill", "--now"]
lease_s = 480
request_timeout_s = 300
pin = { "X-SMG-Routing-Key" = "one" }

[target.budget]
requests = 500
tokens = 200_000
money = 2.5

[target.price]
prompt = 0.5
completion = 1.5

[[target.tenant]]
name = "a"
key_env = "KEY_A"
headers = { x-team = "blue", cookie = { env = "COOKIE" } }
body = { user = "kvfence", metadata = { run = 1 } }

[[target.tenant]]
name = "b"
key_command = ["mint", "--for", "b"]
key_ttl_s = 60
key_header = "api-key"
certificate = { file = "b.pem" }

[[target]]
url = "http://127.0.0.1:8000"
own_server = true
"""


def read(tmp_path, text, redactor=None):
    path = tmp_path / "targets.toml"
    path.write_text(text)
    return read_profile(path, environ=ENVIRON, redactor=redactor or Redactor())


@pytest.fixture
def folder(tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("b@example.org").private_key_and_cert_chain_pem.write_to_path(tmp_path / "b.pem")
    return tmp_path


def test_everything_that_a_profile_may_say(folder):
    redactor = Redactor()
    production, own = read(folder, FULL, redactor)
    assert production.name == "production"
    assert production.address.of(Endpoint.CHAT) == "https://llm.example.com/v1/chat/completions"
    assert (production.model, production.answers_as) == ("big", "big-v2")
    assert production.endpoint is Endpoint.COMPLETIONS
    assert production.has_two_tenants
    assert production.allowed == {Hazard.ORDINARY, Hazard.HEAVY}
    assert production.limits == Limits(requests=500, tokens=200_000, money=2.5)
    assert production.price == Price(prompt=0.5, completion=1.5)
    assert production.authority == folder / "ca.pem"
    assert production.proxy == "http://proxy:3128"
    assert production.hook == ("./restart-prefill", "--now")
    assert production.lease_s == 480
    assert (production.request_timeout_s, own.request_timeout_s) == (300, 60)
    assert production.nodes == ("http://10.0.0.1:30000/v1", "http://10.0.0.2:30000/v1")
    assert production.pin == {"X-SMG-Routing-Key": "one"}
    assert production.place == Place(path=str(folder / "targets.toml"), line=2)
    assert production.warnings == ()
    a, b = production.tenants
    assert run(a.credential.headed()).headers == {"Authorization": "Bearer key-of-tenant-a"}
    assert a.headers == {"x-team": "blue", "cookie": "chocolate-chips"}
    assert a.body == {"user": "kvfence", "metadata": {"run": 1}}
    assert isinstance(b.credential, TokenCommand)
    assert b.certificate.certificate == folder / "b.pem"
    assert own.is_own_server
    assert own.allowed == frozenset(Hazard)
    assert own.tenant_names == ("anonymous",)
    assert own.place.line == 40
    assert redactor.redact("key-of-tenant-a chocolate-chips blue") == "[redacted] [redacted] blue"
    assert "key-of-tenant" not in repr(production)


TARGET = '[[target]]\nurl = "https://h"\n'
TENANT = TARGET + "[[target.tenant]]\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            "[[target]]\nurl = 'https://h'\nmodle = 'x'\n",
            3,
            "[[target]] has an unknown key `modle`; did you mean `model`?",
        ),
        ("[[targets]]\n", 1, "the file has an unknown key `targets`; did you mean `target`?"),
        (
            TENANT + "keyenv = 'KEY_A'\n",
            4,
            "[[target.tenant]] has an unknown key `keyenv`; did you mean `key_env`?",
        ),
        (TENANT + "\n\nkey = 'sk-1234567'\n", 6, "`key` would put a secret into a file"),
        (TENANT + "api_key = 'sk-1234567'\n", 4, "would put a secret"),
        (
            TARGET + "[target.budget]\nrequsts = 1\n",
            4,
            "`budget` has an unknown key `requsts`; did you mean `requests`?",
        ),
        (TARGET + "\nallow = ['heavvy']\n", 4, "not 'heavvy'; did you mean 'heavy'?"),
        (TARGET + "endpoint = 'chats'\n", 3, "`endpoint` must be one of chat, completions, not 'chats'"),
        (TARGET + "two_tenants = 'yes'\n", 3, "`two_tenants` must be true or false, not 'yes'"),
        (TARGET + "two_tenants = true\n", 3, "`two_tenants` wants two tables [[target.tenant]]"),
        (TARGET + "[target.budget]\nrequests = 0\n", 4, "`requests` must be a whole number above 0, not 0"),
        (TARGET + "[target.budget]\nseconds = nan\n", 4, "`seconds` must be a number above 0"),
        (TARGET + "[target.budget]\nmoney = 1\n", 4, "a budget in `money` wants a `price`"),
        (TARGET + "[target.price]\nprompt = 1\n", 3, "`price` has no `completion`; add it"),
        (TARGET + "ca_file = 'absent.pem'\n", 3, "`ca_file` must be the path of a file"),
        (TARGET + "proxy = 'http://me:hunter22@h:1'\n", 3, "use `proxy_env`"),
        (TARGET + "proxy = 'nonsense'\n", 3, "`proxy` must give http://HOST:PORT"),
        (TARGET + "budget = 3\n", 3, "`budget` must be a table"),
        (TARGET + "tenant = 3\n", 3, "each begins with [[target.tenant]]"),
        (TARGET + "nodes = ['nonsense']\n", 3, "the URL of the target cannot be used"),
        ("[[target]]\nname = 'x'\n", 1, "[[target]] has no `url`; add it"),
        ("[[target]]\nurl = 'nonsense'\n", 2, "the URL of the target cannot be used"),
        ("[[target]]\nurl = 'https://me:hunter22@h'\n", 2, "user name or password"),
        ("[[target]]\nurl = ''\n", 2, "`url` must be text that is not empty"),
        (TENANT + "key_env = 'KEY_C'\n", 4, "no environment variable KEY_C"),
        (TENANT + "key_env = 'KEY_A'\nkey_command = ['x']\n", 5, "both give a key"),
        (TENANT + "key_ttl_s = 5\n", 4, "belongs to a `key_command`"),
        (TENANT + "key_command = 'mint b'\n", 4, "`key_command` must be a list of texts"),
        (TENANT + "headers = { 'a b' = 'x' }\n", 4, "no name of an HTTP header"),
        (TENANT + "headers = { host = 'x' }\n", 4, "kvfence's own to set"),
        (TENANT + "headers = { x = 1 }\n", 4, "`headers` must be texts"),
        (TENANT + "headers = 'x'\n", 4, "`headers` must be a table of headers"),
        (TENANT + "body = 1\n", 4, "`body` must be a table of fields"),
        (TENANT + "certificate = { key = 'x' }\n", 4, "`certificate` has no `file`; add it"),
        (TENANT + "name = 'a'\n[[target.tenant]]\nname = 'a'\n", 6, "two tenants are named 'a'"),
        (TARGET + "\n" + TARGET, 4, "two targets are named 'h'"),
        ("", 1, "it has 0"),
        ("[[target]]\nurl = \n", 2, "this is no TOML: Invalid value"),
    ],
)
def test_errors_name_the_line(tmp_path, text, line, said):
    with pytest.raises(OperatorError) as caught:
        read(tmp_path, text)
    assert isinstance(caught.value, ProfileError)
    assert said in str(caught.value)
    assert caught.value.place == Place(path=str(tmp_path / "targets.toml"), line=line)
    assert str(caught.value).startswith(f"{tmp_path / 'targets.toml'}:{line}: ")
    assert not any(secret in str(caught.value) for secret in ("hunter22", "sk-1234567", *ENVIRON.values()))


def test_a_secret_that_stands_in_the_file_is_warned_of_and_kept_back(tmp_path):
    redactor = Redactor()
    (target,) = read(tmp_path, TENANT + "headers = { x-api-key = 'sk-1234567' }\n", redactor)
    assert "the header x-api-key seems to hold a secret" in target.warnings[0]
    assert redactor.redact("sk-1234567") == "[redacted]"


def test_a_proxys_password_comes_from_the_environment(tmp_path):
    redactor = Redactor()
    (target,) = read(tmp_path, TARGET + "proxy_env = 'PROXY'\n", redactor)
    assert target.proxy == ENVIRON["PROXY"]
    assert redactor.redact("hunter22") == "[redacted]"
    assert "hunter22" not in repr(target)


def test_an_azure_target(tmp_path):
    text = (
        '[[target]]\nurl = "https://x.openai.azure.com/openai/deployments/d"\napi_version = "2026-01-01"\n'
        "[[target.tenant]]\nkey_env = 'KEY_A'\n"
    )
    (target,) = read(tmp_path, text)
    assert target.address.query == (("api-version", "2026-01-01"),)
    assert run(target.tenants[0].credential.headed()).headers == {"api-key": "key-of-tenant-a"}


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"#" * ((1 << 20) + 1)])
def test_a_file_that_is_none(tmp_path, content):
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OperatorError, match=r"x\.toml"):
        read_profile(path, environ={}, redactor=Redactor())


def test_the_example_of_the_documents_is_a_profile(folder):
    page = (Path(__file__).parents[2] / "docs" / "targets.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "company-ca.pem")
    own = authority.issue_cert("green@example.org")
    own.cert_chain_pems[0].write_to_path(folder / "green.pem")
    own.private_key_pem.write_to_path(folder / "green.key")
    path = folder / "targets.toml"
    path.write_text(example)
    environ = {"KEY_BLUE": "blue-key", "BLUE_SESSION": "blue-session", "GREEN_PASSWORD": "green-password"}
    (target,) = read_profile(path, environ=environ, redactor=Redactor())
    assert target.tenant_names == ("blue", "green")
    assert target.warnings == ()


def test_every_key_of_a_target_is_in_the_documents(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "targets.md").read_text()
    with pytest.raises(ProfileError) as caught:
        read(tmp_path, TARGET + "zzzzzz = 1\n")
    known = str(caught.value).partition("known are: ")[2].split(", ")
    assert len(known) > 12
    assert [key for key in known if key not in page] == []
