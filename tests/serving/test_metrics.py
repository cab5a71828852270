"""What /metrics says: the nodes' figures under their names, and what clients feel."""

from prometheus_client.parser import text_string_to_metric_families

from kvfence.serving.metrics import HELP, ServingMetrics


def samples(metrics: ServingMetrics) -> dict[tuple[str, frozenset], float]:
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(metrics, name, **labels):
    return samples(metrics)[name, frozenset(labels.items())]


def test_nodes_figures_carry_their_node_and_role():
    figures = {
        "decode-0": ("decode", {"pool_pages|state=free": 3.0, "seals_verified_total": 5.0}),
        "prefill-0": ("prefill", {"pool_pages|state=free": 4.0}),
    }
    metrics = ServingMetrics(lambda: figures)
    assert value(metrics, "kvfence_pool_pages", node="decode-0", role="decode", state="free") == 3
    assert value(metrics, "kvfence_pool_pages", node="prefill-0", role="prefill", state="free") == 4
    assert value(metrics, "kvfence_seals_verified_total", node="decode-0", role="decode") == 5


def test_figures_are_asked_for_anew_each_time():
    figures = {}
    metrics = ServingMetrics(lambda: figures)
    assert not any(name == "kvfence_pool_tokens" for name, _ in samples(metrics))
    figures["decode-0"] = ("decode", {"pool_tokens": 7.0})
    assert value(metrics, "kvfence_pool_tokens", node="decode-0", role="decode") == 7


def test_figures_with_different_labels_share_a_family():
    figures = {"router": ("router", {"x_total|reason=a": 1.0, "x_total|queue=b": 2.0})}
    metrics = ServingMetrics(lambda: figures)
    assert value(metrics, "kvfence_x_total", node="router", role="router", reason="a", queue="") == 1
    assert value(metrics, "kvfence_x_total", node="router", role="router", reason="", queue="b") == 2


def test_what_the_http_side_observes_is_counted():
    metrics = ServingMetrics(dict)
    metrics.on_request(prompt_tokens=7, choices=2)
    metrics.on_first_token(0.3)
    metrics.on_token(0.02)
    metrics.on_end("stop", seconds=1.5, completion_tokens=9)
    metrics.on_refusal("busy")
    assert value(metrics, "kvfence_choices_total") == 2
    assert value(metrics, "kvfence_tokens_total", kind="prompt") == 7
    assert value(metrics, "kvfence_tokens_total", kind="completion") == 9
    assert value(metrics, "kvfence_requests_total", reason="stop") == 1
    assert value(metrics, "kvfence_client_refusals_total", code="busy") == 1
    for name, seconds in (("ttft", 0.3), ("tpot", 0.02), ("request", 1.5)):
        assert value(metrics, f"kvfence_{name}_seconds_sum") == seconds
        assert value(metrics, f"kvfence_{name}_seconds_count") == 1


def test_a_figure_is_explained_in_its_own_words():
    text = ServingMetrics(lambda: {"n": ("decode", {"pool_pages|state=free": 1.0})}).render().decode()
    assert f"# HELP kvfence_pool_pages {HELP['pool_pages']}" in text
