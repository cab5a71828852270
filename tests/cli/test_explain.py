"""`kvfence explain`: one code, all of them, the same as JSON, and what is not loaded for it."""

import json
import subprocess
import sys

from typer.testing import CliRunner

from kvfence.cli.app import app
from kvfence.report.codes import CODES

EXPLAINED = """\
KVF118: The engine has lowered the context by itself
severity: low

what it means
  The context that was configured did not fit, and the engine serves a smaller one. That is a sound choice; \
whoever relies on the configured figure does not know of it.

how it comes about
  The engine fits the context to the memory that it finds, and says so in its log alone.

what to do
  Write the lower figure into the configuration, so that what is served is what is written.

references
  OWASP AISVS 5.5.5: AI Security Verification Standard, control 5.5.5 (https://github.com/OWASP/AISVS/pull/210)
  CWE-440: Expected Behavior Violation (https://cwe.mitre.org/data/definitions/440.html)
"""


def invoke(*words: str):
    return CliRunner().invoke(app, ["explain", *words], env={"COLUMNS": "200", "TERM": "dumb"})


def test_one_is_explained():
    result = invoke("kvf118")
    assert result.exit_code == 0
    assert result.output == EXPLAINED


def test_all_are_listed():
    result = invoke()
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0].split() == ["code", "severity", "what"]
    assert [line.split()[0] for line in lines[1:-1]] == list(CODES)


def test_the_same_as_json():
    data = json.loads(invoke("--json").output)
    assert [entry["code"] for entry in data["codes"]] == list(CODES)
    assert json.loads(invoke("KVF101", "--json").output) == data["codes"][0]


def test_an_unknown_code_is_a_usage_error_with_a_suggestion():
    result = invoke("KVFF203")
    assert result.exit_code == 2
    assert "did you mean KVF203?" in result.stderr


def test_it_loads_neither_a_client_nor_a_model():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom kvfence.cli.app import app\n"
        "assert CliRunner().invoke(app, ['explain', 'KVF101']).exit_code == 0\n"
        "print(sorted({'httpx', 'torch', 'numpy', 'zmq', 'starlette', 'pyrage'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
