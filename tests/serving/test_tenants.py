"""Keys to tenants: with a file, without, and while the file changes."""

import hashlib

import openai
import pytest
import structlog
from tests.serving.api_fakes import MODEL, FakeFrontend, serving

from kvfence.protocol.errors import OperatorError
from kvfence.serving.errors import ApiError
from kvfence.serving.tenants import ANONYMOUS, Principal, Tenants, read_keys, require_admin


def entry(tenant, key, **more):
    lines = [f'tenant = "{tenant}"', f'sha256 = "{hashlib.sha256(key.encode()).hexdigest()}"']
    lines += [
        f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        for name, value in more.items()
    ]
    return "[[key]]\n" + "\n".join(lines) + "\n"


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "keys.toml"
    file.write_text(entry("a", "key-a") + entry("b", "key-b", domain="shared", admin=True))
    return file


def test_known_keys(file):
    tenants = Tenants(keys_file=file)
    assert tenants.identify(["Bearer key-a"]) == Principal("a", "a")
    assert tenants.identify(["bearer  key-b"]) == Principal("b", "shared", admin=True)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["Bearer key-c"],
        ["Bearer "],
        ["Bearer"],
        ["Basic key-a"],
        ["key-a"],
        ["Bearer key-a"] * 2,
        ["Bearer ké"],
    ],
)
def test_missing_and_unknown_keys_are_401(file, headers):
    with pytest.raises(ApiError) as caught:
        Tenants(keys_file=file).identify(headers)
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")
    assert "key-c" not in str(caught.value)
    assert caught.value.headers()["www-authenticate"] == "Bearer"


def test_without_a_file_each_token_is_its_own_tenant():
    tenants = Tenants(salt=b"s")
    assert tenants.identify([]) == Principal(ANONYMOUS, ANONYMOUS)
    one, two = tenants.identify(["Bearer one"]), tenants.identify(["Bearer two"])
    assert one == tenants.identify(["Bearer one"])
    assert len({one.tenant, two.tenant, one.domain, two.domain, ANONYMOUS}) == 3
    assert "one" not in one.tenant.removeprefix("key-")
    assert not one.admin
    # A name cannot be guessed back from a list of likely keys.
    assert Tenants(salt=b"t").identify(["Bearer one"]) != one
    assert Tenants().identify(["Bearer one"]) != Tenants().identify(["Bearer one"])
    with pytest.raises(ApiError):
        tenants.identify(["Basic one"])


def test_changed_file_is_read_again(file):
    tenants = Tenants(keys_file=file)
    replace(file, entry("c", "key-c"))
    assert tenants.identify(["Bearer key-c"]).tenant == "c"
    with pytest.raises(ApiError):
        tenants.identify(["Bearer key-a"])


@pytest.mark.parametrize("content", ["not toml", "", None])
def test_bad_new_file_changes_nothing_and_is_logged_once(file, content):
    tenants = Tenants(keys_file=file)
    if content is None:
        file.unlink()
    else:
        replace(file, content)
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            assert tenants.identify(["Bearer key-a"]).tenant == "a"
    assert [log["event"] for log in logs] == ["keys file kept"]
    replace(file, entry("c", "key-c"))
    assert tenants.identify(["Bearer key-c"]).tenant == "c"


def replace(file, content):
    other = file.with_suffix(".new")
    other.write_text(content)
    other.replace(file)


GOOD_SHA = hashlib.sha256(b"k").hexdigest()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", r"\[\[key\]\]"),
        ("key = 5", r"\[\[key\]\]"),
        ("key = [5]", "is no table"),
        ("[[keys]]", "Did you mean `key`"),
        (
            f'[[key]]\ntenant = "a"\nsha265 = "{GOOD_SHA}"',
            "key 1: unknown key `sha265`. Did you mean `sha256`",
        ),
        (f'[[key]]\nsha256 = "{GOOD_SHA}"', "key 1: `tenant`"),
        (f'[[key]]\ntenant = ""\nsha256 = "{GOOD_SHA}"', "`tenant`"),
        (f'[[key]]\ntenant = "(admin)"\nsha256 = "{GOOD_SHA}"', "`tenant`"),
        (f'[[key]]\ntenant = "a"\ndomain = "a b"\nsha256 = "{GOOD_SHA}"', "`domain`"),
        (f'[[key]]\ntenant = "a"\nadmin = 1\nsha256 = "{GOOD_SHA}"', "`admin`"),
        ('[[key]]\ntenant = "a"\nsha256 = "secret"', "64 hexadecimal digits"),
        (entry("a", "k") + entry("b", "k"), "same sha256 twice"),
        ("# " + "x" * (1 << 20), "larger than"),
        ("x = ", "cannot be read"),
    ],
)
def test_bad_file_does_not_start(tmp_path, content, says):
    file = tmp_path / "keys.toml"
    file.write_text(content)
    with pytest.raises(OperatorError, match=says) as caught:
        Tenants(keys_file=file)
    assert "secret" not in str(caught.value)


def test_missing_file_does_not_start(tmp_path):
    with pytest.raises(OperatorError, match="cannot be read"):
        read_keys(tmp_path / "none.toml")


def test_admin():
    tenants = Tenants(admin_key="root")
    require_admin(tenants.identify(["Bearer root"]))
    for headers in ([], ["Bearer other"]):
        with pytest.raises(ApiError) as caught:
            require_admin(tenants.identify(headers))
        assert caught.value.status == 403


def test_keys_over_a_connection(file):
    frontend = FakeFrontend()
    with serving(frontend, tenants=Tenants(keys_file=file)) as url:

        def client(key):
            return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)

        with client("key-b") as good:
            assert good.completions.create(model=MODEL, prompt="x").choices
            assert good.models.list().data
        with client("wrong") as bad:
            for ask in (bad.models.list, lambda: bad.completions.create(model=MODEL, prompt="x")):
                with pytest.raises(openai.AuthenticationError) as caught:
                    ask()
                assert caught.value.code == "invalid_api_key"
    (job,) = frontend.jobs
    assert (job.tenant, job.domain) == ("b", "shared")
