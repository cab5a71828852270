"""A model whose KV says where it comes from, and which looks at every slot that a step reads.

Rules: a token names its tenant. A slot holds (chain, position) as K and (token, tenant) as V, where the
chain is a running sum over the tenant and every token up to that slot: it is right only after exactly this
context. What comes next is a function of the chain alone. So each step can tell whether it reads one
unbroken context of one tenant, and each answer is known beforehand from its prompt.

It does not say whose fault a foreign slot is, and sees no page that no step reads.
"""

import torch

from kvfence.kv import LayerShape, PageLayout
from kvfence.serving.jobs import EndDelta

PAGE_TOKENS = 4
LAYOUT = PageLayout((LayerShape(kv_heads=1, k_dim=2, v_dim=2),), PAGE_TOKENS, "float32")
TENANTS = (1, 2, 3)
TENANT_TOKENS = 1_000  # token // TENANT_TOKENS is the tenant
CHAIN_MODULUS = 1_000_003  # below 2**24, so that a float32 holds every chain


class ForeignRead(AssertionError):  # noqa: N818 -- reads as what happened
    """A step read, or a client was given, what was not written for it."""


def link(chain, token):
    """The chain after one token more."""
    return (chain * 31 + token * 17 + 7) % CHAIN_MODULUS


def token_after(chain, tenant):
    """What the model says next."""
    return tenant * TENANT_TOKENS + 1 + chain % 900


def answer_after(tokens):
    """The one token that follows this context."""
    tenant = tokens[0] // TENANT_TOKENS
    chain = tenant
    for token in tokens:
        chain = link(chain, token)
    return token_after(chain, tenant)


class ProvenanceModel:
    """Stands in for a PagedModel. Raises ForeignRead, which no node takes for a failure of its model."""

    eos_token_ids = ()

    def __init__(self, who):
        self.who = who

    def prefill(self, views, chunks):
        """Read what stands before each chunk, write the chunk."""
        said = []
        for chunk in chunks:
            tenant = chunk.tokens[0] // TENANT_TOKENS
            chain = self._read(views, chunk.pages, chunk.start, tenant)
            for position, token in enumerate(chunk.tokens, start=chunk.start):
                chain = self._write(views, chunk.pages, position, token, chain)
            if chunk.wants_logits:
                said.append(token_after(chain, tenant))
        return self._logits(said)

    def decode(self, views, rows):
        """Read each row's context, of which its token must be the consequence; write that token."""
        said = []
        for row in rows:
            tenant = row.token // TENANT_TOKENS
            chain = self._read(views, row.pages, row.position, tenant)
            if row.token != token_after(chain, tenant):
                raise ForeignRead(f"{self.who.node} decodes {row.token}, which does not follow its context")
            chain = self._write(views, row.pages, row.position, row.token, chain)
            self._require_zeros(views, row.pages, row.position)
            said.append(token_after(chain, tenant))
        return self._logits(said)

    def _read(self, views, pages, count, tenant):
        chain = tenant
        for position in range(count):
            page, slot = pages[position // PAGE_TOKENS], position % PAGE_TOKENS
            if slot == 0:
                keys, values = views.k[0][page, :, 0].tolist(), views.v[0][page, :, 0].tolist()
            seen = (*keys[slot], *values[slot])
            # What a float cannot be of ours (the bytes of nobody) must not stop the comparison.
            token = int(seen[2]) if 0 <= seen[2] < CHAIN_MODULUS else 0
            chain = link(chain, token)
            if seen != (chain, position, token, tenant):
                raise ForeignRead(
                    f"{self.who.node}: slot {position} in page {page} holds {seen}, for tenant {tenant}"
                )
        return chain

    def _write(self, views, pages, position, token, chain):
        page, slot = pages[position // PAGE_TOKENS], position % PAGE_TOKENS
        chain = link(chain, token)
        if page == views.padding_page:
            return chain  # a padding row's token has no slot, as in `SlotWriter`
        views.k[0][page, slot, 0] = torch.tensor((chain, position), dtype=torch.float32)
        views.v[0][page, slot, 0] = torch.tensor((token, token // TENANT_TOKENS), dtype=torch.float32)
        return chain

    def _require_zeros(self, views, pages, position):
        """Attention multiplies what is masked by zero, so it must be finite: it is kept zero."""
        page, slot = pages[position // PAGE_TOKENS], position % PAGE_TOKENS
        for view in (views.k[0], views.v[0]):
            if view[page, slot + 1 :].any():
                raise ForeignRead(f"{self.who.node}: page {page} is not zero after slot {slot}")

    def _logits(self, said):
        logits = torch.zeros(len(said), (max(TENANTS) + 1) * TENANT_TOKENS)
        for row, token in enumerate(said):
            logits[row, token] = 1.0
        return logits


class Client:
    """One request's client: it knows the only right answer, and takes what comes."""

    def __init__(self, stream, router):
        self.stream, self.router = stream, router
        self.context = list(stream.job.tokens)
        self.end = None

    def take(self, stats):
        """Look at every delta that came since."""
        while not self.stream._deltas.empty():
            delta = self.stream._deltas.get_nowait()
            if self.end is not None:
                raise AssertionError(f"{delta} after the end")
            if isinstance(delta, EndDelta):
                self.end = delta.end
                stats[f"end {delta.end.reason.value}"] += 1
                continue
            stats["tokens"] += 1
            if delta.position != len(self.context) or delta.token != answer_after(self.context):
                raise ForeignRead(f"a client was given {delta} where {answer_after(self.context)} follows")
            self.context.append(delta.token)
