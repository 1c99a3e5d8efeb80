"""The node `$cbs`: where clients of Azure put a token before they attach other links (AMQP claims-based security).

A client attaches a sender to `$cbs` and a receiver from it, and asks for the operation `put-token`; the answer has the
application properties `status-code` and `status-description`, and the request's message-id as its correlation-id.

Rule 1. A token is neither checked nor kept: SASL has let the connection in, and a token adds nothing to that.
Rule 2. A request is accepted as a delivery and answered. One that cannot be decoded is dropped, one too large ends its
        link.
Rule 3. Requests are small, and who does not take the answers gets no credit for more of them.
"""

from typing import Final, final

from protocol.answers import Answers
from protocol.decode import Buffer
from protocol.errors import DecodeError
from protocol.events import Disposed, TransferRun
from protocol.link import Link
from protocol.message import AmqpValue, Message, decode_message
from protocol.performatives import Accepted, Properties, Source, Target
from protocol.receiver import Receiver
from protocol.sender import Sender
from protocol.serial import MASK
from protocol.session import Session
from protocol.spec import LinkCondition, ReceiverSettleMode
from protocol.values import Int

__all__ = ["ADDRESS", "ClaimsNode"]

ADDRESS: Final = "$cbs"
_PUT_TOKEN: Final = "put-token"  # noqa: S105 - the name of an operation
_CREDIT: Final = 10
_REQUEST_BYTES_MAX: Final = 64 * 1024


@final
class ClaimsNode:
    """The links to `$cbs` of one connection."""

    __slots__ = ("_answers", "_replies", "_requests")

    def __init__(self) -> None:
        self._requests: dict[Receiver, None] = {}
        self._replies: dict[str, Sender] = {}
        self._answers = Answers()

    def attach_requests(self, link: Receiver) -> None:
        """Accept a link for tokens."""
        source = (link.remote.source if link.remote else None) or Source()
        first = ReceiverSettleMode.FIRST
        link.accept(source, Target(address=ADDRESS), receiver_settle_mode=first, max_message_size=_REQUEST_BYTES_MAX)
        self._requests[link] = None
        self._grant()

    def attach_replies(self, link: Sender) -> None:
        """Accept a link for answers; its target address is the name that requests may reply to."""
        target = link.remote.target if link.remote else None
        given = target if isinstance(target, Target) else Target()
        link.accept(Source(address=ADDRESS), given)
        self._replies[str(given.address or ADDRESS)] = link
        self._answers.attach(link)

    def is_asked_in(self, session: Session) -> bool:
        """Tell whether a session has a link for tokens."""
        return any(link.session is session for link in self._requests)

    def detached(self, link: Link) -> None:
        """Forget a link."""
        if isinstance(link, Receiver):
            self._requests.pop(link, None)
        elif isinstance(link, Sender):
            self._answers.detach(link)
            self._replies = {name: other for name, other in self._replies.items() if other is not link}
            self._grant()

    def requested(self, run: TransferRun) -> None:
        """Answer what came on a link, if it is one for tokens."""
        for index, payload in enumerate(run.payloads):
            if run.link not in self._requests:
                return
            if len(payload) > _REQUEST_BYTES_MAX:
                del self._requests[run.link]
                run.link.fail(LinkCondition.MESSAGE_SIZE_EXCEEDED, f"a request of {len(payload)} bytes")
                return
            if run.link.is_live:
                run.link.session.settle((run.first_id + index) & MASK, 1, Accepted())
            self._answer(payload)
        self._grant()

    def disposed(self, event: Disposed) -> None:
        """Hear what became of answers."""
        self._answers.disposed(event)
        self._grant()

    def flush(self, link: Sender) -> None:
        """Send the answers that the link has credit for."""
        self._answers.flush(link)
        self._grant()

    def _answer(self, payload: Buffer) -> None:
        """Answer a request on the link that it names, else on the one that bears the node's own name."""
        try:
            message = decode_message(payload)
        except DecodeError:
            return
        properties = message.properties or Properties()
        link = self._replies.get(str(properties.reply_to or ADDRESS))
        if link is not None:
            self._answers.send(link, _answer_to(message, properties))

    def _grant(self) -> None:
        """Give credit for requests where half of it is used, unless answers wait to be taken."""
        if self._answers.is_empty:
            for link in self._requests:
                if link.credit <= _CREDIT // 2:
                    link.grant(_CREDIT)


def _answer_to(message: Message, properties: Properties) -> bytes:
    asked = message.application_properties
    operation = asked.get("operation") if isinstance(asked, dict) else None
    status, description = (202, "Accepted") if operation == _PUT_TOKEN else (400, f"the only operation is {_PUT_TOKEN}")
    answer = Message(
        properties=Properties(correlation_id=properties.message_id),
        application_properties={"status-code": Int(status), "status-description": description},
        body=(AmqpValue(None),),
    )
    return answer.encode()
