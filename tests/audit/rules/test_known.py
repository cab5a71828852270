"""The list of known defects: well-formed, each entry fires on what it names, and on nothing else."""

import pytest
from tests.audit.hearing import node
from tests.audit.readers.samples import KVFENCE_INFO, OLLAMA_PS
from tests.audit.rules.auditing import findings, said, sglang, vllm

from kvfence.audit.readers import READERS
from kvfence.audit.rules.known import _entry, entries, fits, known_vulnerable, open_entries
from kvfence.audit.versions import parsed
from kvfence.protocol.errors import InvariantError
from kvfence.report.codes import CODES


def names(one):
    return [finding.evidence["entry"] for finding in findings(known_vulnerable, one)]


def test_every_entry_is_well_formed():
    assert len({entry.name for entry in entries()}) == len(entries())
    for entry in entries():
        assert entry.engine in {reader.engine for reader in READERS}
        assert entry.code in CODES
        assert entry.sources and all(source.startswith("https://") for source in entry.sources)
        assert all(parsed(bound) for bound in (entry.first, entry.fixed) if bound is not None)
        assert entry.words[0].islower() or entry.words[0] in "/L"
        assert entry.when or entry.first or entry.fixed or entry.engine == "ollama"


def test_an_entry_with_a_word_that_nobody_reads_is_ours():
    with pytest.raises(InvariantError):
        _entry({"name": "x", "fixd": "1"})


@pytest.mark.parametrize(
    ("one", "wanted"),
    [
        (sglang("p", "prefill", version="0.5.19"), ["sglang-rejected-continues", "sglang-mm-hashes"]),
        (sglang("p", "decode", version="0.5.22rc1"), ["sglang-rejected-continues", "sglang-mm-hashes"]),
        (sglang("p", "prefill", version="0.5.12"), ["sglang-rejected-continues"]),
        (sglang("p", "prefill", version="0.5.22"), []),
        (sglang("s", version="0.5.19"), ["sglang-mm-hashes"]),
        (sglang("s", allow_auto_truncate=True), ["sglang-auto-truncate"]),
        (sglang("s", allow_auto_truncate=False), []),
        (vllm(policy="recompute"), ["vllm-recompute"]),
        (vllm(policy="fail"), []),
        (vllm(connector="ExampleConnector"), ["vllm-salt-example-connector"]),
        (vllm(connector="LMCacheConnectorV1"), ["vllm-salt-lmcache"]),
        (vllm(connector="NixlConnector"), []),
        (vllm(connector="MooncakeConnector", version="0.29.1"), ["vllm-request-id-cache"]),
        (
            vllm(connector="MooncakeConnector", version="0.29.0"),
            ["vllm-mooncake-transfer-id", "vllm-request-id-cache"],
        ),
        (vllm("p", "prefill", version="0.29.0"), ["vllm-mm-transport", "vllm-request-id-cache"]),
        (vllm(version="0.27.0"), ["vllm-request-id-cache", "vllm-thinking-budget"]),
        (vllm(version="0.20.1"), ["vllm-request-id-cache", "vllm-thinking-budget", "vllm-async-pipeline"]),
        (vllm(version="0.15.0"), ["vllm-request-id-cache", "vllm-thinking-budget"]),
        (
            vllm(version="0.6.3"),
            ["vllm-request-id-cache", "vllm-thinking-budget", "vllm-predictable-hash", "vllm-prefix-timing"],
        ),
        (node(pages={"/api/ps": OLLAMA_PS}), ["ollama-truncates"]),
        (node("hello"), []),
    ],
)
def test_entries_fire_on_what_they_name(one, wanted):
    assert names(one) == wanted


def test_every_entry_fires_somewhere():
    everything = [
        sglang("p", "prefill", version="0.5.19", allow_auto_truncate=True),
        vllm("p", "prefill", connector="MooncakeConnector", version="0.17.0", policy="recompute"),
        vllm(connector="ExampleConnector", version="0.6.0"),
        vllm(connector="LMCacheConnector"),
        node(pages={"/api/ps": OLLAMA_PS}),
    ]
    assert {name for one in everything for name in names(one)} == {entry.name for entry in entries()}


def test_the_finding_names_version_source_and_way_out():
    one = findings(known_vulnerable, sglang("p", "prefill", version="0.5.19"))[0]
    assert (one.code, one.severity) == ("KVF105", "critical")
    assert one.what.startswith(
        "0.5.19: with separate prefill and decode a rejected prompt goes on as one token"
    )
    assert one.fix == "upgrade to 0.5.22 or newer"
    assert "https://github.com/sgl-project/sglang/pull/36988" in one.references


def test_what_cannot_be_decided_does_not_fire_and_is_named():
    for version in (None, "main e087e662"):
        one = sglang("p", "prefill", version=version, allow_auto_truncate=False)
        assert names(one) == []
        assert open_entries(one) == ("sglang-rejected-continues", "sglang-mm-hashes")
    fixed = sglang("p", "prefill", allow_auto_truncate=False)
    assert open_entries(fixed) == ()
    by_name = {entry.name: entry for entry in entries()}
    assert fits(by_name["sglang-auto-truncate"], sglang()) is None


@pytest.mark.parametrize("setting", ["unsafe_faults", "unsafe_without"])
def test_a_kvfence_that_leaks_by_wish(setting):
    one = node(pages={"/server_info": {**KVFENCE_INFO, setting: ["manifest"], "nodes": []}})
    assert said(known_vulnerable, one) == [
        ("KVF105", "critical", "node", f"it runs with {setting} manifest: it leaks by its operator's wish")
    ]
    assert said(known_vulnerable, node(pages={"/server_info": {**KVFENCE_INFO, "nodes": []}})) == []
