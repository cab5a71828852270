"""The file of a deployment: what it may say, what is refused, and where each thing stands in it."""

from pathlib import Path

import pytest

from kvfence.audit.deployment import Access, PairSpec, is_url, read_deployment
from kvfence.audit.deployment_lines import lines_in
from kvfence.protocol.errors import OperatorError
from kvfence.report import Place

WHOLE = """\
key_env = "ADMIN_KEY"
ca_file = "ca.pem"
proxy = "http://proxy:3128"
timeout_s = 5

[[node]]
name = "router"
role = "router"
url = "https://api.example"

[[node]]
name = "prefill-0"
role = "prefill"
url = "http://10.0.0.1:30000"
log = "prefill-0.log"
key_env = "OTHER_KEY"
env = { SGLANG_MOONCAKE_MAX_TRANSFER_BATCH_INDICES = "256" }

[[node]]
name = "decode-0"
role = "decode"
saved = ["info.json", "metrics.txt"]
queue_wait_s_max = 20

[[pair]]
prefill = "prefill-0"
decode = "decode-0"
"""


def written(tmp_path, text) -> Path:
    path = tmp_path / "deployment.toml"
    path.write_text(text)
    return path


def test_a_whole_file(tmp_path):
    path = written(tmp_path, WHOLE)
    read = read_deployment(path)
    router, prefill, decode = read.nodes
    assert read.access == Access("ADMIN_KEY", tmp_path / "ca.pem", "http://proxy:3128", 5.0)
    assert (router.role, router.url, router.log) == ("router", "https://api.example", None)
    assert (prefill.log, prefill.key_env) == (tmp_path / "prefill-0.log", "OTHER_KEY")
    assert prefill.env == {"SGLANG_MOONCAKE_MAX_TRANSFER_BATCH_INDICES": "256"}
    assert (decode.saved, decode.queue_wait_s_max) == (
        (tmp_path / "info.json", tmp_path / "metrics.txt"),
        20.0,
    )
    assert prefill.place == Place(path=str(path), line=11)
    assert read.pairs == (PairSpec("prefill-0", "decode-0", Place(path=str(path), line=25)),)


NODE = '[[node]]\nname = "a"\nurl = "http://a"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "key_nev = 'X'\n" + NODE,
            "deployment.toml:1 sets 'key_nev', which is no setting of an audit: did you mean 'key_env'?",
        ),
        (
            NODE + "rol = 'prefill'\n",
            ":4 sets 'rol' of a node, which is no setting of an audit: did you mean 'role'?",
        ),
        (NODE + "role = 'prefil'\n", ":4 gives a the role 'prefil': did you mean 'prefill'?"),
        (NODE + "role = 'nothing'\n", "known are: prefill, decode, router, server"),
        ("[[node]]\nname = 'a'\nurl = 'a:80'\n", ":3 gives a the url 'a:80': write it as http://host:port"),
        ("[[node]]\nurl = 'http://a'\n", ":1 has a node without a name"),
        ("[[node]]\nname = 'a'\n", ":1 says nothing of where a can be read: add url, log or saved"),
        (NODE + NODE, ":5 has two nodes 'a': rename one"),
        ("", ":1 describes no node"),
        ("node = 7\n", ":1 has node as something else than tables: write [[node]]"),
        ("timeout_s = 0\n" + NODE, ":1 sets timeout_s to 0"),
        ("timeout_s = true\n" + NODE, "sets timeout_s to True"),
        (NODE + "log = 7\n", ":4 sets log to 7"),
        (NODE + "name2 = 1\n", "did you mean 'name'?"),
        (NODE + "env = { A = 1 }\n", ":4 sets env"),
        (NODE + "queue_wait_s_max = -1\n", ":4 sets queue_wait_s_max to -1"),
        (NODE + "key_env = ''\n", ":4 sets key_env to ''"),
        (NODE + "[[pair]]\nprefill = 'a'\n", ":4 has a pair without decode"),
        (
            NODE + "[[pair]]\nprefill = 'a'\ndecode = 'aa'\n",
            ":6 pairs 'aa', which is no node: did you mean 'a'?",
        ),
        (NODE + "[[pair]]\nprefil = 'a'\n", ":5 sets 'prefil' of a pair"),
        ("[[node]\n", "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, said):
    with pytest.raises(OperatorError) as error:
        read_deployment(written(tmp_path, text))
    assert said in str(error.value)


def test_a_file_that_is_not_there_or_too_large(tmp_path):
    with pytest.raises(OperatorError, match="cannot be read"):
        read_deployment(tmp_path / "none.toml")
    with pytest.raises(OperatorError, match="too many for a deployment"):
        read_deployment(written(tmp_path, "#" * ((1 << 20) + 1)))


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("http://a", True),
        ("https://a:8000/v1", True),
        ("ftp://a", False),
        ("a:80", False),
        ("http://", False),
        ("http://a:99999", False),
        ("http://[::1", False),
    ],
)
def test_addresses(text, is_one):
    assert is_url(text) is is_one


def test_lines_skip_texts_of_several_lines_and_comments():
    lines = lines_in(
        'a = """\n[[node]]\nb = 1\n"""\n# [[node]]\n[[node]]  # the first\nb = 2\n[t]\nc.d = 1\n'
    )
    assert lines.of("node", 0) == 6
    assert lines.of("node", 0, "b") == 7
    assert lines.of("t", 0, "c") == 9
    assert lines.of("node", 0, "missing") == 6
    assert lines.of("nothing", 3) == 1


def test_a_password_in_an_address_that_is_none_is_not_repeated(tmp_path):
    with pytest.raises(OperatorError) as raised:
        read_deployment(written(tmp_path, '[[node]]\nname = "a"\nurl = "htp://me:s3cret@host"\n'))
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("url", ["http://me:s3cret@host", "http://host?key=s3cret"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(tmp_path, url):
    with pytest.raises(OperatorError, match=r":3 gives a a url with .*take it out of the url") as raised:
        read_deployment(written(tmp_path, f'[[node]]\nname = "a"\nurl = "{url}"\n'))
    assert "s3cret" not in str(raised.value)
