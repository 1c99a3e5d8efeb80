"""The checks of messages that name their own address, on a link to the anonymous terminus or to a whole muxer.

Rule 1. The decision is cached by address: a message costs a look-up. The cache is bounded, and ends when the rules
        change.
Rule 2. The address is the one that the engine routes by: `to`, and for a muxer `to`, else the subject.
Rule 3. A message without an address passes: the engine refuses it.
"""

from typing import Final, final

from ambermq.engine.address import NodeKind, muxer_address, parse_address, queue_address
from ambermq.engine.decide.node_names import message_destination
from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.access import EVERYTHING, Action
from ambermq.protocol.gateway.links.link_authority import is_allowed, refusal_text
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.gateway.links.routing_fields import RoutingFields

__all__ = ["RelayGuard", "relay_guard"]

_CACHE_MAX: Final = 1024
_CACHED_LENGTH_MAX: Final = 256


@final
class RelayGuard:
    """The decisions of one link about the addresses of its messages."""

    __slots__ = ("_access", "_known", "_muxer", "_name_bytes_max", "_peer")

    def __init__(self, peer: LinkPeer, muxer: str) -> None:
        """`muxer` is the name of the link's muxer, empty for the anonymous terminus."""
        self._peer = peer
        self._muxer = muxer
        self._name_bytes_max = peer.gateway.engine.config.name_bytes_max
        self._access = peer.gateway.access
        """The rules of the cached decisions."""
        self._known: dict[str, bool] = {}

    def refusal(self, body: Buffer) -> Error | None:
        """Return why a message is refused; None if it is allowed."""
        fields = RoutingFields(body)
        address = self._address(fields)
        if not address or self._may_send(address):
            return None
        return Error(
            condition=Symbol(AmqpCondition.UNAUTHORIZED_ACCESS),
            description=refusal_text(self._peer, Action.SEND, address),
        )

    @property
    def user(self) -> str:
        """The user of the link; empty without a user name."""
        return self._peer.identity.username or ""

    def may_create(self, queue: str) -> bool:
        """Return whether a message may create the queue of this name."""
        return is_allowed(self._peer, Action.CREATE, queue_address(queue))

    def _address(self, fields: RoutingFields) -> str:
        if not self._muxer:
            address = fields.to or ""
            if address.startswith("/muxers/"):
                return self._with_subject(address, fields)
            return address
        destination = message_destination(self._muxer, fields.to, fields.subject, name_bytes_max=self._name_bytes_max)
        return f"{muxer_address(self._muxer)}/{destination}"

    def _with_subject(self, address: str, fields: RoutingFields) -> str:
        """Return the address of a muxer with its destination: without one that is the subject."""
        try:
            parsed = parse_address(address, name_bytes_max=self._name_bytes_max)
        except Refused:
            return address
        return address if parsed.destination is not None else f"{address}/{fields.subject or ''}"

    def _may_send(self, address: str) -> bool:
        if self._peer.gateway.access is not self._access:
            self._access = self._peer.gateway.access
            self._known.clear()
        known = self._known.get(address)
        if known is None:
            known = is_allowed(self._peer, Action.SEND, address)
            if len(address) <= _CACHED_LENGTH_MAX:
                if len(self._known) >= _CACHE_MAX:
                    self._known.clear()
                self._known[address] = known
        return known


def relay_guard(peer: LinkPeer, address: str) -> RelayGuard | None:
    """Return the guard of a link to `address`; None if no message of it names an address, or if all may be sent."""
    if peer.gateway.access is EVERYTHING:
        return None
    if not address:
        return RelayGuard(peer, "")
    if not address.startswith("/muxers/"):
        return None
    try:
        parsed = parse_address(address, name_bytes_max=peer.gateway.engine.config.name_bytes_max)
    except Refused:
        return None
    is_whole = parsed.kind is NodeKind.MUXER and parsed.destination is None
    return RelayGuard(peer, parsed.name) if is_whole else None
