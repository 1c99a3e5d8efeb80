"""The messages of a life: orders, letters with every type of id, and one with its own address."""

import json
from typing import Any
from uuid import UUID

from proton import Message, ulong

__all__ = ["addressed", "messages_of_every_id", "order"]


def order(message_id: str, **properties: Any) -> Message:
    """Return a durable message in JSON, as compressible as messages are."""
    lines = [{"article": f"tea number {number}", "amount": number, "unit": "kilogram"} for number in range(8)]
    body = json.dumps({"order": message_id, "customer": "Ada", "lines": lines}).encode()
    return Message(body, inferred=True, durable=True, id=message_id, properties={"customer": "Ada", **properties})


def addressed(address: str, message_id: str) -> Message:
    return Message("by the anonymous terminus", durable=True, id=message_id, address=address)


def messages_of_every_id() -> list[Message]:
    """Return messages with an id of each type, and one without; with fields of all sorts but no time to live."""
    ids: list[Any] = [ulong(4711), UUID(int=0xA11CE), b"\xff\x00", "text", None]
    made = [Message(f"letter {number}", durable=number % 2 == 0, id=one) for number, one in enumerate(ids)]
    made[0].annotations = {"x-opt-colour": "red"}
    made[0].priority = 9
    made[3].group_id = "letters"
    made[1].properties = {"number": 1, "truth": True, "nothing": None, "share": 0.5}
    made[2].subject, made[2].reply_to, made[2].correlation_id = "subject", "replies", ulong(1)
    return made
