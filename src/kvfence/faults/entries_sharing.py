"""Faults of names and sharing: ids, slots, cache keys, domains, pins, and when a page is shown."""

from kvfence.faults.fault import Fault, Harm
from kvfence.faults.layers import Layer

NAMES = (
    Fault(
        name="control-slot-reuse/first-token-slot",
        bugs=("KVI-047", "KVI-049"),
        decisions=("first_token",),
        what="First tokens of all leases on a prefill node pass through one slot.",
        leaks="A request starts with the first token that was sampled for another one.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
    Fault(
        name="id-collision/lease-number-reused",
        bugs=("KVI-052", "KVI-056", "KVI-059"),
        decisions=("lease_number",),
        what="A lease gets the lowest number that is not live, so that writers know it from before.",
        leaks="What was said of the earlier lease counts for the new one: decode reads pages nobody wrote.",
        caught_by=(Layer.MANIFEST, Layer.SEAL, Layer.GUARD, Layer.EXPLORER, Layer.SIMULATOR),
    ),
)

KEYS = (
    Fault(
        name="key-omits-identity/chain-dropped",
        bugs=("KVI-060", "KVI-067"),
        decisions=("chains_prefix", "compares_prefix"),
        what="The key of a prefix page covers its own tokens and leaves out those before it.",
        leaks="A prompt goes on from pages that were computed after another context.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
    Fault(
        name="key-collision/short-key",
        bugs=("KVI-077", "KVI-082", "KVI-084"),
        decisions=("prefix_digest", "compares_prefix"),
        what="Keys of prefix pages have one byte, and a hit rests on the key alone.",
        leaks="A prompt goes on from the pages of whoever has the same key.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
    Fault(
        name="salt-dropped/domain-ignored",
        bugs=("KVI-086", "KVI-087"),
        decisions=("prefix_domain",),
        what="The tenant's domain reaches the prefix index and is left out of its keys.",
        leaks="Who guesses another tenant's prompt is served from that tenant's pages, and can see it.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
        harm=Harm.REUSE,
    ),
    Fault(
        name="shared-cache-timing/one-domain",
        bugs=("KVI-142", "KVI-144"),
        decisions=("sharing_domain",),
        what="All tenants share prefix pages by design, in one domain.",
        leaks="Time to the first token and the count of cached tokens tell what other tenants have sent.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
        harm=Harm.REUSE,
    ),
)

PREFIXES = (
    Fault(
        name="visible-before-written/published-early",
        bugs=("KVI-090", "KVI-091", "KVI-092"),
        decisions=("publishes",),
        what="The pages of a prompt are published when they are leased, before they are computed.",
        leaks="A prompt with the same prefix goes on from what an earlier owner left in them.",
        caught_by=(Layer.SEAL, Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
        by_chance=(Layer.GUARD,),
    ),
    Fault(
        name="match-not-pinned/unpinned-match",
        bugs=("KVI-095", "KVI-097"),
        decisions=("pins_match",),
        what="The pages that a match found are not pinned, so that they can be evicted before they are used.",
        leaks="A prompt goes on from pages that another one has overwritten since.",
        caught_by=(Layer.GUARD, Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
)
