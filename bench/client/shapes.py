"""The default messages of other client libraries, for a realistic load.

Rule 1. The bytes of a shape are those recorded from a client of the interoperation matrix, except for the bytes that
differ from message to message. A test compares them with the recorded bytes.
Rule 2. The bytes that differ have a fixed width, so that a batch is stamped by column: delivery-id and tag are four
bytes each, eight characters of a message-id are the hexadecimal delivery-id, a creation-time is the batch's time.
Rule 3. Durability is as recorded: the Azure clients send no header, all others send durable messages.
"""

from typing import Final, NamedTuple

from bench.client import wire

__all__ = ["SHAPES", "STAMPED_ID_BYTES", "Shape"]

STAMPED_ID_BYTES: Final = 8
"""The number of characters of a message-id that differ from message to message."""


class Shape(NamedTuple):
    """The default message of a client, and its transfer."""

    fields: tuple[bytes, ...]
    """The encoded fields of the transfer after its tag."""
    is_list32: bool
    """Whether the client writes the fields of a transfer as a wide list."""
    sections: bytes
    """The sections before the body."""
    body_code: int
    """The descriptor of the body section."""
    is_text: bool
    """Whether the body is a string; else it is binary."""
    id_position: int = -1
    """The position of the stamped characters of the message-id in the sections; -1 if there is no message-id."""
    time_position: int = -1
    """The position of the eight bytes of creation-time in the sections; -1 if there is none."""

    def message(self, body: bytes) -> bytes:
        """Return the encoded message with a body."""
        value = wire.string(body.decode()) if self.is_text else wire.binary(body)
        return self.sections + bytes((0x00, 0x53, self.body_code)) + value

    def transfer_head(self) -> bytes:
        """Return the transfer up to its payload, with a delivery-id and a tag of four zero bytes."""
        fields = (wire.ZERO, wire.uint(0), wire.binary(bytes(4)), *self.fields)
        described = wire.described32 if self.is_list32 else wire.described
        return described(wire.TRANSFER, *fields)


_FALSE: Final = wire.boolean(False)
_DURABLE: Final = bytes.fromhex("005370c0020141")
_DURABLE_32: Final = bytes.fromhex("005370d0000000050000000141")
_NO_PROPERTIES: Final = bytes.fromhex("00537345")
_JMS_ANNOTATIONS: Final = bytes.fromhex(
    "005372c12904a30e782d6f70742d6a6d732d646573745100a312782d6f70742d6a6d732d6d73672d747970655105"
)
_JMS_PROPERTIES: Final = bytes.fromhex(
    "005373d00000004b0000000aa12f49443a36343230663835362d653537372d343661632d623432322d613936623464366663336162"
    "3a313a313a312d3140a1047465787440404040404083000001a206f5e4a6"
)
_AZURE_PROPERTIES: Final = bytes.fromhex(
    "005373c0330da12434613031623239352d636534302d346338362d383235362d336131653137613565613031404040404040404040404040"
)
_AZURE_NODE_SECTIONS: Final = bytes.fromhex("00537045005372d10000000400000000") + _NO_PROPERTIES
_JMS_SECTIONS: Final = _DURABLE + _JMS_ANNOTATIONS + _JMS_PROPERTIES

SHAPES: Final = {
    "proton": Shape((wire.ZERO,), False, _DURABLE + _NO_PROPERTIES, 0x77, is_text=True),
    "rhea": Shape((wire.ZERO, _FALSE, _FALSE), True, _DURABLE_32 + _NO_PROPERTIES, 0x77, is_text=True),
    "jms": Shape(
        (wire.ZERO, _FALSE),
        False,
        _JMS_SECTIONS,
        0x77,
        is_text=True,
        id_position=_JMS_SECTIONS.index(b"ID:") + 3,
        time_position=len(_JMS_SECTIONS) - 8,
    ),
    "go": Shape((wire.ZERO,), True, _DURABLE_32, 0x75, is_text=False),
    "rust": Shape((wire.ZERO, _FALSE), False, _DURABLE, 0x77, is_text=True),
    "azure": Shape(
        (wire.ZERO, b"\x56\x00", wire.boolean(False), *(wire.NULL,) * 5),
        False,
        _AZURE_PROPERTIES,
        0x75,
        is_text=False,
        id_position=_AZURE_PROPERTIES.index(b"4a01b295"),
    ),
    "azure-node": Shape((wire.ZERO, _FALSE, _FALSE), True, _AZURE_NODE_SECTIONS, 0x75, is_text=False),
}
"""The shapes by the names of their clients in the interoperation matrix."""
