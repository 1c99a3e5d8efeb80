"""The links of one connection to a node of ours that answers requests, such as `$management`.

    requests come in on receivers -> taken -> whoever knows the node answers -> send -> a sender that bears the name

Rule 1. A request that is too large ends its link; what comes on a link that has ended is dropped.
Rule 2. Requests are given credit as long as no answer waits to be taken.
"""

from collections.abc import Iterator, Sequence
from typing import Final, final

from ambermq.protocol.amqp10.endpoints import LinkEndpoint, ReceiverEndpoint, SessionEndpoint
from ambermq.protocol.amqp10.events import Disposed, TransferRun
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Accepted, Source, Target
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.spec import LinkCondition, ReceiverSettleMode
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.nodes.reply_queue import ReplyQueue

__all__ = ["REQUEST_BYTES_MAX", "RequestResponse", "target_of"]

REQUEST_BYTES_MAX: Final = 64 * 1024
"""A larger request ends its link."""


@final
class RequestResponse:
    """The links to one node: those for requests, and those for answers by the names that requests reply to."""

    __slots__ = ("_address", "_answers", "_credit", "_replies", "_requests")

    def __init__(self, address: str, *, credit: int) -> None:
        """`address` is the node's own; `credit` is for so many requests on a link at a time."""
        self._address = address
        self._credit = credit
        self._requests: dict[ReceiverEndpoint, None] = {}
        self._replies: dict[str, Sender] = {}
        self._answers = ReplyQueue()

    def attach_requests(self, link: ReceiverEndpoint) -> None:
        """Accept a link for requests."""
        source = (link.remote.source if link.remote else None) or Source()
        target, first = Target(address=self._address), ReceiverSettleMode.FIRST
        link.accept(source, target, receiver_settle_mode=first, max_message_size=REQUEST_BYTES_MAX)
        self._requests[link] = None
        self.grant()

    def attach_replies(self, link: Sender, names: Sequence[str], source: Source) -> None:
        """Accept a link for answers to requests that reply to one of `names`."""
        link.accept(source, target_of(link))
        self._replies.update(dict.fromkeys(names, link))
        self._answers.attach(link)

    def is_asked_in(self, session: SessionEndpoint) -> bool:
        """Tell whether a session has a link for requests."""
        return any(link.session is session for link in self._requests)

    def detached(self, link: LinkEndpoint) -> None:
        """Forget a link."""
        if isinstance(link, Receiver):
            self._requests.pop(link, None)
        elif isinstance(link, Sender):
            self._answers.detach(link)
            self._replies = {name: other for name, other in self._replies.items() if other is not link}
            self.grant()

    def taken(self, run: TransferRun) -> Iterator[tuple[int, Buffer]]:
        """Yield the delivery-ids and messages that came on a link, as long as it is one for requests."""
        for index, payload in enumerate(run.payloads):
            if run.link not in self._requests:
                return
            if len(payload) > REQUEST_BYTES_MAX:
                del self._requests[run.link]
                run.link.fail(LinkCondition.MESSAGE_SIZE_EXCEEDED, f"a request of {len(payload)} bytes")
                return
            yield (run.first_id + index) & MASK, payload

    def settle(self, link: ReceiverEndpoint, delivery_id: int) -> None:
        """Accept a request as a delivery."""
        if link.is_live:
            link.session.settle(delivery_id, 1, Accepted())

    def send(self, name: str, answer: bytes) -> bool:
        """Send an answer on the link for this name, and tell whether there is one."""
        link = self._replies.get(name)
        if link is None:
            return False
        self._answers.send(link, answer)
        return True

    def disposed(self, event: Disposed) -> None:
        """Hear what became of answers."""
        self._answers.disposed(event)
        self.grant()

    def flush(self, link: Sender) -> None:
        """Send the answers that the link has credit for."""
        self._answers.flush(link)
        self.grant()

    def relieve(self, session: SessionEndpoint) -> None:
        """Send the answers that waited for room in a session."""
        self._answers.relieve(session)
        self.grant()

    def grant(self) -> None:
        """Give credit for requests where half of it is used, unless answers wait to be taken."""
        if self._answers.is_empty:
            for link in self._requests:
                if link.credit <= self._credit // 2:
                    link.grant(self._credit)


def target_of(link: LinkEndpoint) -> Target:
    """Return the target that the peer asked for, an empty one where it is none of messages."""
    target = link.remote.target if link.remote else None
    return target if isinstance(target, Target) else Target()
