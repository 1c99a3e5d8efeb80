"""The links of one connection to a node of the broker that answers requests, such as `$management`.

    a receiver of the node -> `requests` yields them -> the node answers -> `send` -> the sender for the reply-to

Rule 1. A request that is too large ends its link. Requests on a link that has ended are dropped.
Rule 2. Links for requests get credit while no answer waits.
"""

from collections.abc import Iterator, Sequence
from typing import Final, final

from ambermq.protocol.amqp10.endpoints import LinkEndpoint, ReceiverEndpoint, SessionEndpoint
from ambermq.protocol.amqp10.events import Disposed, TransferRun
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Accepted, Error, Rejected, Source, Target
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.spec import LinkCondition, ReceiverSettleMode
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.links.outcome_mapping import with_outcomes
from ambermq.protocol.gateway.nodes.reply_queue import ReplyQueue

__all__ = ["REQUEST_BYTES_MAX", "RequestResponse", "target_of"]

REQUEST_BYTES_MAX: Final = 64 * 1024
"""A larger request ends its link."""
_REQUEST_BYTES: Final = 8 * 1024
"""An estimate of the memory of a decoded request."""


@final
class RequestResponse:
    """The links to one node: those for requests, and those for answers, by the reply-to of requests."""

    __slots__ = ("_address", "_answers", "_credit", "_replies", "_requests", "pending")

    def __init__(self, address: str, *, credit: int) -> None:
        """Create the links of the node at `address`, with at most `credit` requests in flight on each link."""
        self._address = address
        self._credit = credit
        self._requests: dict[ReceiverEndpoint, None] = {}
        self._replies: dict[str, Sender] = {}
        self._answers = ReplyQueue()
        self.pending = 0
        """The requests whose answer is not there."""

    def attach_requests(self, link: ReceiverEndpoint) -> None:
        """Accept a link for requests."""
        source = with_outcomes((link.remote.source if link.remote else None) or Source())
        target, first = Target(address=self._address), ReceiverSettleMode.FIRST
        link.accept(source, target, receiver_settle_mode=first, max_message_size=REQUEST_BYTES_MAX)
        self._requests[link] = None
        self.grant()

    def attach_replies(self, link: Sender, names: Sequence[str], source: Source) -> None:
        """Accept a link for answers to requests whose reply-to is one of `names`."""
        link.accept(with_outcomes(source), target_of(link))
        self._replies.update(dict.fromkeys(names, link))
        self._answers.attach(link)

    @property
    def waiting_bytes(self) -> int:
        """The size of the answers that wait for credit, and an estimate of the requests that wait for their answer."""
        return self._answers.size + self.pending * _REQUEST_BYTES

    def all(self) -> list[LinkEndpoint]:
        """Return the links."""
        return [*self._requests, *dict.fromkeys(self._replies.values())]

    def has_request_link(self, session: SessionEndpoint) -> bool:
        """Return whether a session has a link for requests."""
        return any(link.session is session for link in self._requests)

    def detached(self, link: LinkEndpoint) -> None:
        """Forget a link."""
        if isinstance(link, Receiver):
            self._requests.pop(link, None)
        elif isinstance(link, Sender):
            self._answers.detach(link)
            self._replies = {name: other for name, other in self._replies.items() if other is not link}
            self.grant()

    def requests(self, run: TransferRun) -> Iterator[tuple[int, Buffer]]:
        """Yield the delivery-id and the message of each request of a run, if its link is for requests."""
        for index, payload in enumerate(run.payloads):
            if run.link not in self._requests:
                return
            if len(payload) > REQUEST_BYTES_MAX:
                del self._requests[run.link]
                description = f"a request has {len(payload)} bytes, at most {REQUEST_BYTES_MAX} are allowed"
                run.link.fail(LinkCondition.MESSAGE_SIZE_EXCEEDED, description)
                return
            yield (run.first_id + index) & MASK, payload

    def settle(self, link: ReceiverEndpoint, delivery_id: int, error: Error | None = None) -> None:
        """Settle the delivery of a request as accepted, with an error as rejected."""
        if link.is_live:
            link.session.settle(delivery_id, 1, Accepted() if error is None else Rejected(error=error))

    def has_reply_link(self, name: str) -> bool:
        """Return whether a link takes the answers to this reply-to."""
        return name in self._replies

    def answer_bytes_max(self, name: str) -> int:
        """Return the max-message-size of the link that takes the answers to this reply-to; 0 without one."""
        link = self._replies.get(name)
        return (link.remote.max_message_size if link and link.remote else 0) or 0

    def send(self, name: str, answer: bytes) -> bool:
        """Send an answer on the link for this name; return False if there is no such link, or if it is dropped."""
        link = self._replies.get(name)
        return link is not None and self._answers.send(link, answer)

    def disposed(self, event: Disposed) -> None:
        """Settle the outcomes of answers."""
        self._answers.disposed(event)
        self.grant()

    def flush(self, link: Sender) -> None:
        """Send as many answers as the link has credit for."""
        self._answers.flush(link)
        self.grant()

    def relieve(self, session: SessionEndpoint) -> None:
        """Send the answers that waited for room in a session."""
        self._answers.relieve(session)
        self.grant()

    def grant(self) -> None:
        """Renew the credit of the links that have used half of it, unless answers wait."""
        if self._answers.is_empty:
            for link in self._requests:
                if link.credit <= self._credit // 2:
                    link.grant(self._credit)


def target_of(link: LinkEndpoint) -> Target:
    """Return the target in the peer's attach; an empty one for a coordinator or none."""
    target = link.remote.target if link.remote else None
    return target if isinstance(target, Target) else Target()
