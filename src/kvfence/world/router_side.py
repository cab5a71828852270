"""What a router's process does in a world: messages out, tokens and ends to clients, and what they expect.

Rules: a client is given its own tokens, each in its place, one end, and nothing after it; what differs is a
finding. Tokens are not computed here: they are functions of request and position (`requests.py`).
"""

from typing import ClassVar

from kvfence.protocol import RouterCore, commands, events, hash_tokens
from kvfence.protocol.vocabulary import Event
from kvfence.protocol.words import Peer, RefusalCode
from kvfence.world.mail import Mail
from kvfence.world.oracle import Kind
from kvfence.world.requests import Client


class RouterSide(Mail):
    """Commands of RouterCore."""

    CARRY_OUT: ClassVar[dict[type, str]] = {
        **Mail.CARRY_OUT,
        commands.SetTimer: "_set_timer",
        commands.SendReserve: "_send_reserve",
        commands.SendPrefill: "_send_prefill",
        commands.SendAbort: "_send_abort",
        commands.DeliverToken: "_deliver_token",
        commands.FinishRequest: "_finish_request",
    }

    def _send_reserve(self, peer: Peer, command: commands.SendReserve, _event: Event) -> None:
        attempt = command.attempt
        if attempt.number > 1 and self.aborted.get(attempt.request, 0) < attempt.number - 1:
            what = f"attempt {attempt.number} of request {attempt.request} is opened before the abort"
            self.find(Kind.TWO_ATTEMPTS, peer, what)
        tokens = self.asks[attempt.request].tokens(command.tokens)
        reserve = events.Reserve(
            peer, attempt, command.writer, command.tokens, command.max_tokens, hash_tokens(tokens)
        )
        self.send(peer, command.decode, reserve)

    def _send_prefill(self, peer: Peer, command: commands.SendPrefill, _event: Event) -> None:
        ask = self.asks[command.attempt.request]
        core = self.cores[peer]
        prompt = len(ask.prompt)
        if isinstance(core, RouterCore) and command.attempt.request in core.requests:
            prompt = core.requests[command.attempt.request].tokens
        prefill = events.Prefill(
            peer,
            command.attempt,
            command.decode,
            command.lease,
            command.pages,
            ask.tokens(prompt),
            self.decisions.sharing_domain(ask.tenant),
        )
        self.send(peer, command.prefill, prefill)

    def _send_abort(self, peer: Peer, command: commands.SendAbort, _event: Event) -> None:
        request, number = command.attempt.request, command.attempt.number
        self.aborted[request] = max(number, self.aborted.get(request, 0))
        self.send(peer, command.peer, events.Abort(peer, command.attempt))

    def _deliver_token(self, peer: Peer, command: commands.DeliverToken, event: Event) -> None:
        client = self.clients.get(command.request)
        if client is None or not isinstance(event, events.TokenMade):
            return
        expected = len(self.asks[command.request].prompt) + client.delivered
        if event.attempt.request != command.request or event.position != expected:
            what = f"request {command.request} gets token {event.position} of {event.attempt}, not {expected}"
            self.find(Kind.WRONG_TOKEN, peer, what)
        elif client.end is not None:
            self.find(
                Kind.WRONG_TOKEN, peer, f"request {command.request} gets {event.position} after its end"
            )
        self.clients[command.request] = Client(client.delivered + 1, client.end, client.is_lost)

    def _finish_request(self, peer: Peer, command: commands.FinishRequest, event: Event) -> None:
        client = self.clients.get(command.request, Client())
        if client.end is not None:
            self.find(Kind.TWO_ENDS, peer, f"request {command.request}: {client.end}, then {command.end}")
        refusal = command.end.refusal
        was_admitted = not isinstance(event, events.Submitted)
        if was_admitted and refusal is not None and refusal.code is RefusalCode.CONTEXT_LENGTH:
            self.find(Kind.BROKEN_PROMISE, peer, f"request {command.request} was admitted: {refusal}")
        self.clients[command.request] = Client(client.delivered, command.end, client.is_lost)
