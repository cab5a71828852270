"""kvfence: `/server_info`, where the router speaks for every node, and its models.

Each node of a deployment is a reading of its own. Limits and pools are what the running nodes reported.
"""

from kvfence.audit.page import Page, field, has_fields, items, least, whole, word
from kvfence.audit.readers.interface import Reader, form, is_owned_by, model_cards
from kvfence.audit.reading import ADVERTISED, CONTEXT, LARGEST, PAGE, POOL, Material, Notebook, Reading

ENGINE = "kvfence"
FORMS = (form("serves", "  serves ", r"^kvfence (?P<v>\d\S*)  serves ", is_start=True),)


def owns(page: Page) -> bool:
    """Server info by its nodes and fence, models by their owner, metrics by their prefix."""
    return (
        has_fields(page.data, "fence", "nodes")
        or is_owned_by(page, ENGINE)
        or page.has_metrics_of("kvfence_")
    )


def read(material: Material) -> tuple[Reading, ...]:
    """The router, and each node that it knows of."""
    router = Notebook(ENGINE, role="router")
    nodes: list[Reading] = []
    for page in material.pages:
        if is_owned_by(page, ENGINE):
            advertised = least(whole(card.get("max_model_len")) for card in model_cards(page))
            router.put_of(page, ADVERTISED, advertised, "max_model_len")
        if has_fields(page.data, "fence", "nodes"):
            _read_router(router, page)
            nodes += [
                _node(page, data) for data in items(field(page.data, "nodes")) if isinstance(data, dict)
            ]
    for page in material.pages:
        if not nodes and page.has_metrics_of("kvfence_"):
            nodes += _nodes_of_metrics(page)
    hit = material.hits.latest("serves")
    if router.version is None and hit is not None:
        router.version = hit.groups["v"]
    if not nodes:
        router.note("the nodes were not seen: /server_info was not answered; it may want the admin key")
    return (router.done(), *nodes)


def _read_router(router: Notebook, page: Page) -> None:
    router.version = router.version or word(field(page.data, "version"))
    router.put_of(page, CONTEXT, whole(field(page.data, "context_tokens")), "context_tokens")
    router.put_of(page, LARGEST, whole(field(page.data, "largest_request_tokens")), "largest_request_tokens")
    router.put_of(page, "set.fence", word(field(page.data, "fence")), "fence")
    for name in ("unsafe_faults", "unsafe_without"):
        named = [text for item in items(field(page.data, name)) if (text := word(item)) is not None]
        router.put_of(page, f"set.{name}", ", ".join(named) or None, name)


def _node(page: Page, data: dict[str, object]) -> Reading:
    name = word(data.get("name")) or "a node without a name"
    notebook = Notebook(ENGINE, word(data.get("version")), word(data.get("role")), name)
    facts = (
        (POOL, "pool_tokens"),
        (CONTEXT, "context_tokens"),
        (LARGEST, "largest_request_tokens"),
        (PAGE, "page_tokens"),
    )
    for figure, fact in facts:
        notebook.put_of(page, figure, whole(data.get(fact)), f"nodes[{name}].{fact}")
    for setting in ("fence", "transport", "unsafe_faults", "unsafe_without"):
        notebook.put_of(page, f"set.{setting}", word(data.get(setting)), f"nodes[{name}].{setting}")
    return notebook.done()


def _nodes_of_metrics(page: Page) -> list[Reading]:
    """Metrics show the pools alone."""
    readings = []
    for sample in page.of_name("kvfence_pool_tokens"):
        name, role = word(sample.labels.get("node")), word(sample.labels.get("role"))
        notebook = Notebook(ENGINE, role=role, part=name)
        notebook.put_of(page, POOL, whole(sample.value), "kvfence_pool_tokens")
        readings.append(notebook.done())
    return readings


READER = Reader(ENGINE, FORMS, owns, read)
