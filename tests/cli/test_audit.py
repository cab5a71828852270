"""`kvfence audit` on the command line: the incident's figures, its flags, its files, its exit codes."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.audit.readers.samples import KVFENCE_INFO, SGLANG_FINAL, SGLANG_INFO, VLLM_LOG, models
from tests.audit.serving import Answers, over_a_socket
from typer.testing import CliRunner

from kvfence.cli.app import app

HERE = Path(__file__).parent
INCIDENT = (
    "[2026-08-27 10:00:00] server_args=ServerArgs(model_path='m', context_length=1048576, page_size=64, "
    "disaggregation_mode='prefill', disaggregation_transfer_backend='mooncake', "
    "disaggregation_enable_kv_checksum=False, kv_canary='none')\n"
    "[2026-08-27 10:01:00 TP0] max_total_num_tokens=681280, chunked_prefill_size=8192, context_len=1048576, x=1\n"
)
NOWHERE = "http://127.0.0.1:9"  # nobody listens on the discard port of a test machine


def invoke(*words, stdin=None, env=None):
    environment = {"COLUMNS": "110", "TERM": "dumb", **(env or {})}
    return CliRunner().invoke(app, ["audit", *map(str, words)], input=stdin, env=environment)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "prefill-0.log"
    path.write_text(INCIDENT)
    return path


def test_the_incidents_figures_are_critical_with_both_numbers_in_the_first_line(log):
    result = invoke(log)
    assert result.exit_code == 1
    first = result.output.splitlines()[0]
    assert first.startswith("CRITICAL KVF101 prefill-0.log: ")
    assert "681,280" in first and "1,048,576" in first and "64.97%" in first


def test_what_a_human_reads(log, monkeypatch):
    monkeypatch.chdir(log.parent)
    output = invoke(log.name).output
    lines = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
    assert lines == (HERE / "audit_incident.txt").read_text()


def test_the_log_on_standard_input():
    result = invoke("-", stdin=INCIDENT)
    assert result.exit_code == 1
    assert "CRITICAL KVF101 standard input: the pool of 681,280 tokens" in result.output.splitlines()[0]


def test_a_node_whose_pool_holds_its_context_is_clean(tmp_path):
    path = tmp_path / "vllm.log"
    path.write_text("\n".join(VLLM_LOG).replace("0.19.0", "0.32.0"))
    result = invoke(path)
    assert result.exit_code == 0, result.output
    assert "ok: the pool holds the longest request" in result.output


def test_an_unknown_node_is_a_finding_and_with_a_higher_bar_inconclusive(tmp_path):
    path = tmp_path / "decode.log"
    path.write_text("[2026-08-27 10:01:00 TP0] Decode batch. #running-req: 1, #token: 2266\n")
    result = invoke(path)
    assert (result.exit_code, result.output.startswith("MEDIUM KVF104")) == (1, True)
    assert invoke(path, "--fail-on", "high").exit_code == 5
    assert invoke(path, "--fail-on", "high", "--on-inconclusive", "pass").exit_code == 0


def test_what_is_piped_is_not_folded(log, tmp_path):
    """`kvfence audit … | grep`: the row of a node is one line, whatever COLUMNS says."""
    far = tmp_path / f"{'a-long-name-of-a-node-' * 6}.log"
    far.write_text(INCIDENT)
    lines = invoke(log, far, env={"COLUMNS": "40"}).output.splitlines()
    rows = [line for line in lines if "64.97" not in line and "681,280" in line and "1,048,576" in line]
    assert len(rows) == 2
    assert all("0.65" in row and "too small: 681,280 tokens are less than" in row for row in rows)


def test_a_server_over_a_real_socket():
    answers = Answers({"/server_info": SGLANG_INFO, "/v1/models": models("sglang", max_model_len=2048)})
    with over_a_socket(answers) as url:
        result = invoke(url, "--fail-on", "high")
    assert result.exit_code == 0, result.output
    assert "decode sglang 0.5.23" in result.output
    assert {method for method, *_ in answers.asked} == {"GET"}


def test_a_key_is_named_by_its_variable_and_stands_nowhere(tmp_path):
    answers = Answers(
        {"/server_info": SGLANG_INFO}, key="s3cret", locked=("/server_info", "/get_server_info")
    )
    report = tmp_path / "events.jsonl"
    with over_a_socket(answers) as url:
        result = invoke(
            url, "--key-env", "ADMIN", "--jsonl", report, "--fail-on", "high", env={"ADMIN": "s3cret"}
        )
        missing = invoke(url, "--key-env", "ADMIN", env={"ADMIN": ""})
    assert "2,944" in result.output
    assert "s3cret" not in result.output + report.read_text()
    assert missing.exit_code == 2
    assert "the environment variable ADMIN is not set" in missing.output


def test_unreachable_is_an_exit_code_of_its_own():
    result = invoke(NOWHERE)
    assert result.exit_code == 4
    assert "KVF119" in result.output and "nothing answers at this address" in result.output


def test_refused_credentials_are_the_same():
    locked = Answers(
        {}, key="x", locked=["/v1/models", "/server_info", "/metrics", "/version", "/info", "/props"]
    )
    with over_a_socket(locked) as url:
        result = invoke(url)
    assert result.exit_code == 4
    assert "it wants a key, and none was given" in result.output


def test_roles_by_flags_make_a_pair(log, tmp_path):
    decode = tmp_path / "decode-0.log"
    decode.write_text(INCIDENT.replace("prefill", "decode").replace("681280", "2040000"))
    result = invoke("--prefill", log, "--decode", decode)
    assert "pair prefill-0.log → decode-0.log: limit 681,280 tokens" in result.output
    assert "KVF102" in result.output


def test_one_address_that_speaks_for_a_deployment():
    with over_a_socket(Answers({"/server_info": KVFENCE_INFO})) as url:
        result = invoke(url)
    assert result.exit_code == 0, result.output
    assert "limit 2,048 tokens" in result.output


def test_the_example_of_a_deployment_is_read(tmp_path, monkeypatch):
    example = HERE.parents[1] / "examples" / "deployment.toml"
    names = [node["name"] for node in tomllib.loads(example.read_text())["node"]]
    text = example.read_text().replace("https://api.example", NOWHERE)
    for host in ("10.0.0.11:30000", "10.0.0.21:30000"):
        text = text.replace(f"http://{host}", NOWHERE)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "prefill-0.log").write_text(INCIDENT)
    (tmp_path / "deployment.toml").write_text("\n".join(x for x in text.splitlines() if "ca_file" not in x))
    result = invoke("--deployment", tmp_path / "deployment.toml", env={"KVFENCE_AUDIT_KEY": "k"})
    assert result.exit_code == 1, result.output
    assert all(name in result.output for name in names)
    assert "CRITICAL KVF101 prefill-0" in result.output.splitlines()[0]


@pytest.mark.parametrize("to", ["json", "sarif", "junit", "html", "jsonl"])
def test_reports_are_written(log, tmp_path, to):
    report = tmp_path / f"report.{to}"
    assert invoke(log, f"--{to}", report).exit_code == 1
    assert "681,280" in report.read_text()


def test_sarif_points_to_the_line_of_the_log(log, tmp_path):
    report = tmp_path / "report.sarif"
    invoke(log, "--sarif", report)
    results = json.loads(report.read_text())["runs"][0]["results"]
    first = next(one for one in results if one["ruleId"] == "KVF101")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("prefill-0.log")
    assert place["region"]["startLine"] == 2


def test_figures_are_kept_and_changes_told(log, tmp_path):
    figures = tmp_path / "figures.json"
    invoke(log, "--baseline", figures, "--write-baseline")
    assert json.loads(figures.read_text())["nodes"][0]["figures"]["pool_tokens"] == 681280
    assert "KVF116" not in invoke(log, "--baseline", figures).output
    log.write_text(INCIDENT.replace("681280", "500000"))
    assert (
        "KVF116 prefill-0.log: its pool was 681,280 tokens and is 500,000"
        in invoke(log, "--baseline", figures).output
    )


def test_what_is_accepted_does_not_count(log, tmp_path):
    accepted = tmp_path / "accepted.toml"
    codes = ("KVF101", "KVF108")
    accepted.write_text(
        "".join(
            f'[[accepted]]\ncode = "{code}"\nabout = "prefill-0.log"\nreason = "known"\nexpires = 2999-01-01\n'
            for code in codes
        )
    )
    result = invoke(log, "--accepted", accepted)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "there is nothing to audit"),
        (("nothing.log",), "nothing.log is not there"),
        (("host:30000",), "write http://host:30000"),
        (("-", "-"), "standard input can be read once"),
        (("-", "--write-baseline"), "add --baseline FILE"),
        (("-", "--baseline", "nothing.json"), "write it first with --write-baseline"),
        (("-", "--timeout-s", "0"), "use seconds up to 300"),
        (("-", "--ca-file", "nothing.pem"), "the CA file nothing.pem cannot be used"),
        (("-", "--proxy", "nonsense"), "is no address"),
        (("--deployment", "nothing.toml"), "nothing.toml cannot be read"),
    ],
)
def test_what_is_wrong_with_flags_is_said_before_anything_else(words, said):
    result = invoke(*words, stdin=SGLANG_FINAL)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_files_of_one_name_are_told_apart(tmp_path):
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "node.log")
        paths[-1].write_text(SGLANG_FINAL)
    assert "node.log #2" in invoke(*paths).output


def test_the_help_fits_on_a_screen():
    result = CliRunner().invoke(app, ["audit", "--help"], env={"COLUMNS": "100", "TERM": "dumb"})
    assert len(result.output.splitlines()) <= 60


def test_nothing_heavy_is_loaded():
    program = (
        "import sys\nfrom typer.testing import CliRunner\nfrom kvfence.cli.app import app\n"
        f"assert CliRunner().invoke(app, ['audit', '-'], input={SGLANG_FINAL!r}).exit_code in (0, 1, 5)\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert not set(loaded.split()) & {"torch", "numpy", "zmq", "starlette", "transformers"}
