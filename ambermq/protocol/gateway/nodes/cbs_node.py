"""The node `$cbs` of AMQP claims-based security: clients for Azure put a token there before they attach other links.

A client attaches a sender to `$cbs` and a receiver from it, and asks for the operation `put-token`. The answer has the
application properties `status-code` and `status-description`. Its correlation-id is the request's message-id.

Rule 1. The connection checks a token if it logs in by tokens. Otherwise SASL has authenticated it, and a token adds
        nothing to that: it is neither checked nor kept.
Rule 2. A request is accepted as a delivery and answered. A request that cannot be decoded is dropped. A request that is
        too large ends its link.
Rule 3. Requests are small. A client gets no credit for more requests while its answers wait.
"""

from collections.abc import Mapping
from typing import Any, Final, final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.events import TransferRun
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.message.message import AmqpValue, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Properties, Source
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Int
from ambermq.protocol.auth.sas_token import SAS_TOKEN_TYPE
from ambermq.protocol.gateway.nodes.node_peer import PutToken
from ambermq.protocol.gateway.nodes.request_response import RequestResponse, target_of

__all__ = ["ADDRESS", "CbsNode"]

ADDRESS: Final = "$cbs"
_CREDIT: Final = 10
_PUT_TOKEN: Final = "put-token"  # noqa: S105 - the name of an operation
_ACCEPTED: Final = (202, "Accepted")
_BAD_REQUEST: Final = 400


@final
class CbsNode:
    """The node `$cbs` for the links of one connection."""

    __slots__ = ("_put", "links")

    def __init__(self, put: PutToken | None = None) -> None:
        """`put` checks the tokens; None for a connection that needs none."""
        self._put = put
        self.links = RequestResponse(ADDRESS, credit=_CREDIT)

    def attach_replies(self, link: Sender) -> None:
        """Accept a link for answers; its target address is the reply-to of requests.

        A link without a target address gets the answers to its own name, and to the name of the node. Clients for
        Node.js use the first, clients for Python the second.
        """
        address = target_of(link).address
        names = (link.name, ADDRESS) if address is None else (str(address),)
        self.links.attach_replies(link, names, Source(address=ADDRESS))

    def receive_requests(self, run: TransferRun) -> None:
        """Answer the requests of a run, if its link is a link for requests."""
        for delivery_id, payload in self.links.requests(run):
            self.links.settle(run.link, delivery_id)
            self._answer(payload)
        self.links.grant()

    def _answer(self, payload: Buffer) -> None:
        """Answer a request on the link of its reply-to; without one on the link with the name of the node."""
        try:
            message = decode_message(payload)
        except DecodeError:
            return
        properties = message.properties or Properties()
        status, description = self._carry_out(message)
        answer = Message(
            properties=Properties(correlation_id=properties.message_id),
            application_properties={"status-code": Int(status), "status-description": description},
            body=(AmqpValue(None),),
        )
        self.links.send(str(properties.reply_to or ADDRESS), answer.encode())

    def _carry_out(self, message: Message) -> tuple[int, str]:
        """Carry out a request; return the status of the answer and its description."""
        found = message.application_properties
        request: Mapping[str, Any] = found if isinstance(found, dict) else {}
        if request.get("operation") != _PUT_TOKEN:
            return _BAD_REQUEST, f"the only operation is {_PUT_TOKEN}"
        if self._put is None:
            return _ACCEPTED
        if request.get("type") != SAS_TOKEN_TYPE:
            return _BAD_REQUEST, f"the only type of a token is {SAS_TOKEN_TYPE}"
        audience, token = request.get("name"), _text_of(message)
        if not isinstance(audience, str) or token is None:
            return _BAD_REQUEST, "a token needs its text as the body, and its audience as the property name"
        return self._put(token, audience)


def _text_of(message: Message) -> str | None:
    """Return the body of a message if it is one text."""
    if len(message.body) != 1:
        return None
    (section,) = message.body
    value = section.value if isinstance(section, AmqpValue) else None
    return value if isinstance(value, str) else None
