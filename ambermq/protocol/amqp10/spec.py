"""AMQP 1.0 as tables: encodings, types, named values and constants.

`python -m ambermq.tools.spec --write` generates this file from the OASIS XML; `make spec` fails if it was edited.
"""

from typing import Final, NamedTuple

__all__ = [
    "ARCHETYPES",
    "CHOICES",
    "DESCRIPTORS",
    "MAJOR",
    "MESSAGE_FORMAT",
    "MINOR",
    "MIN_MAX_FRAME_SIZE",
    "PORT",
    "PRIMITIVES",
    "RESTRICTED",
    "REVISION",
    "SASL_MAJOR",
    "SASL_MINOR",
    "SASL_REVISION",
    "SECURE_PORT",
    "TLS_MAJOR",
    "TLS_MINOR",
    "TLS_REVISION",
    "AmqpCondition",
    "ConnectionCondition",
    "Encoding",
    "LinkCondition",
    "ReceiverSettleMode",
    "Role",
    "SaslCode",
    "SenderSettleMode",
    "SessionCondition",
    "StdDistMode",
    "TerminusDurability",
    "TerminusExpiryPolicy",
    "TransactionCondition",
    "TxnCapability",
]

PORT: Final = 5672
SECURE_PORT: Final = 5671
MAJOR: Final = 1
MINOR: Final = 0
REVISION: Final = 0
MIN_MAX_FRAME_SIZE: Final = 512
MESSAGE_FORMAT: Final = 0
TLS_MAJOR: Final = 1
TLS_MINOR: Final = 0
TLS_REVISION: Final = 0
SASL_MAJOR: Final = 1
SASL_MINOR: Final = 0
SASL_REVISION: Final = 0


class Encoding(NamedTuple):
    """An encoding of a primitive type."""

    name: str
    code: int
    category: str
    width: int


class Role:
    """Values of role, a boolean."""

    SENDER: Final = False
    RECEIVER: Final = True


class SenderSettleMode:
    """Values of sender-settle-mode, a ubyte."""

    UNSETTLED: Final = 0
    SETTLED: Final = 1
    MIXED: Final = 2


class ReceiverSettleMode:
    """Values of receiver-settle-mode, a ubyte."""

    FIRST: Final = 0
    SECOND: Final = 1


class AmqpCondition:
    """Values of amqp-error, a symbol."""

    INTERNAL_ERROR: Final = "amqp:internal-error"
    NOT_FOUND: Final = "amqp:not-found"
    UNAUTHORIZED_ACCESS: Final = "amqp:unauthorized-access"
    DECODE_ERROR: Final = "amqp:decode-error"
    RESOURCE_LIMIT_EXCEEDED: Final = "amqp:resource-limit-exceeded"
    NOT_ALLOWED: Final = "amqp:not-allowed"
    INVALID_FIELD: Final = "amqp:invalid-field"
    NOT_IMPLEMENTED: Final = "amqp:not-implemented"
    RESOURCE_LOCKED: Final = "amqp:resource-locked"
    PRECONDITION_FAILED: Final = "amqp:precondition-failed"
    RESOURCE_DELETED: Final = "amqp:resource-deleted"
    ILLEGAL_STATE: Final = "amqp:illegal-state"
    FRAME_SIZE_TOO_SMALL: Final = "amqp:frame-size-too-small"


class ConnectionCondition:
    """Values of connection-error, a symbol."""

    CONNECTION_FORCED: Final = "amqp:connection:forced"
    FRAMING_ERROR: Final = "amqp:connection:framing-error"
    REDIRECT: Final = "amqp:connection:redirect"


class SessionCondition:
    """Values of session-error, a symbol."""

    WINDOW_VIOLATION: Final = "amqp:session:window-violation"
    ERRANT_LINK: Final = "amqp:session:errant-link"
    HANDLE_IN_USE: Final = "amqp:session:handle-in-use"
    UNATTACHED_HANDLE: Final = "amqp:session:unattached-handle"


class LinkCondition:
    """Values of link-error, a symbol."""

    DETACH_FORCED: Final = "amqp:link:detach-forced"
    TRANSFER_LIMIT_EXCEEDED: Final = "amqp:link:transfer-limit-exceeded"
    MESSAGE_SIZE_EXCEEDED: Final = "amqp:link:message-size-exceeded"
    REDIRECT: Final = "amqp:link:redirect"
    STOLEN: Final = "amqp:link:stolen"


class TerminusDurability:
    """Values of terminus-durability, a uint."""

    NONE: Final = 0
    CONFIGURATION: Final = 1
    UNSETTLED_STATE: Final = 2


class TerminusExpiryPolicy:
    """Values of terminus-expiry-policy, a symbol."""

    LINK_DETACH: Final = "link-detach"
    SESSION_END: Final = "session-end"
    CONNECTION_CLOSE: Final = "connection-close"
    NEVER: Final = "never"


class StdDistMode:
    """Values of std-dist-mode, a symbol."""

    MOVE: Final = "move"
    COPY: Final = "copy"


class SaslCode:
    """Values of sasl-code, a ubyte."""

    OK: Final = 0
    AUTH: Final = 1
    SYS: Final = 2
    SYS_PERM: Final = 3
    SYS_TEMP: Final = 4


class TxnCapability:
    """Values of txn-capability, a symbol."""

    LOCAL_TRANSACTIONS: Final = "amqp:local-transactions"
    DISTRIBUTED_TRANSACTIONS: Final = "amqp:distributed-transactions"
    PROMOTABLE_TRANSACTIONS: Final = "amqp:promotable-transactions"
    MULTI_TXNS_PER_SSN: Final = "amqp:multi-txns-per-ssn"
    MULTI_SSNS_PER_TXN: Final = "amqp:multi-ssns-per-txn"


class TransactionCondition:
    """Values of transaction-error, a symbol."""

    UNKNOWN_ID: Final = "amqp:transaction:unknown-id"
    TRANSACTION_ROLLBACK: Final = "amqp:transaction:rollback"
    TRANSACTION_TIMEOUT: Final = "amqp:transaction:timeout"


PRIMITIVES: Final[dict[str, tuple[Encoding, ...]]] = {
    "null": (Encoding("null", 0x40, "fixed", 0),),
    "boolean": (
        Encoding("boolean", 0x56, "fixed", 1),
        Encoding("true", 0x41, "fixed", 0),
        Encoding("false", 0x42, "fixed", 0),
    ),
    "ubyte": (Encoding("ubyte", 0x50, "fixed", 1),),
    "ushort": (Encoding("ushort", 0x60, "fixed", 2),),
    "uint": (
        Encoding("uint", 0x70, "fixed", 4),
        Encoding("smalluint", 0x52, "fixed", 1),
        Encoding("uint0", 0x43, "fixed", 0),
    ),
    "ulong": (
        Encoding("ulong", 0x80, "fixed", 8),
        Encoding("smallulong", 0x53, "fixed", 1),
        Encoding("ulong0", 0x44, "fixed", 0),
    ),
    "byte": (Encoding("byte", 0x51, "fixed", 1),),
    "short": (Encoding("short", 0x61, "fixed", 2),),
    "int": (Encoding("int", 0x71, "fixed", 4), Encoding("smallint", 0x54, "fixed", 1)),
    "long": (Encoding("long", 0x81, "fixed", 8), Encoding("smalllong", 0x55, "fixed", 1)),
    "float": (Encoding("ieee-754", 0x72, "fixed", 4),),
    "double": (Encoding("ieee-754", 0x82, "fixed", 8),),
    "decimal32": (Encoding("ieee-754", 0x74, "fixed", 4),),
    "decimal64": (Encoding("ieee-754", 0x84, "fixed", 8),),
    "decimal128": (Encoding("ieee-754", 0x94, "fixed", 16),),
    "char": (Encoding("utf32", 0x73, "fixed", 4),),
    "timestamp": (Encoding("ms64", 0x83, "fixed", 8),),
    "uuid": (Encoding("uuid", 0x98, "fixed", 16),),
    "binary": (Encoding("vbin8", 0xA0, "variable", 1), Encoding("vbin32", 0xB0, "variable", 4)),
    "string": (Encoding("str8-utf8", 0xA1, "variable", 1), Encoding("str32-utf8", 0xB1, "variable", 4)),
    "symbol": (Encoding("sym8", 0xA3, "variable", 1), Encoding("sym32", 0xB3, "variable", 4)),
    "list": (
        Encoding("list0", 0x45, "fixed", 0),
        Encoding("list8", 0xC0, "compound", 1),
        Encoding("list32", 0xD0, "compound", 4),
    ),
    "map": (Encoding("map8", 0xC1, "compound", 1), Encoding("map32", 0xD1, "compound", 4)),
    "array": (Encoding("array8", 0xE0, "array", 1), Encoding("array32", 0xF0, "array", 4)),
}
"""Name of a primitive type -> its encodings."""

RESTRICTED: Final[dict[str, str]] = {
    "role": "boolean",
    "sender-settle-mode": "ubyte",
    "receiver-settle-mode": "ubyte",
    "handle": "uint",
    "seconds": "uint",
    "milliseconds": "uint",
    "delivery-tag": "binary",
    "delivery-number": "sequence-no",
    "transfer-number": "sequence-no",
    "sequence-no": "uint",
    "message-format": "uint",
    "ietf-language-tag": "symbol",
    "fields": "map",
    "amqp-error": "symbol",
    "connection-error": "symbol",
    "session-error": "symbol",
    "link-error": "symbol",
    "delivery-annotations": "annotations",
    "message-annotations": "annotations",
    "application-properties": "map",
    "data": "binary",
    "amqp-sequence": "list",
    "amqp-value": "*",
    "footer": "annotations",
    "annotations": "map",
    "message-id-ulong": "ulong",
    "message-id-uuid": "uuid",
    "message-id-binary": "binary",
    "message-id-string": "string",
    "address-string": "string",
    "terminus-durability": "uint",
    "terminus-expiry-policy": "symbol",
    "std-dist-mode": "symbol",
    "filter-set": "map",
    "node-properties": "fields",
    "sasl-code": "ubyte",
    "transaction-id": "binary",
    "txn-capability": "symbol",
    "transaction-error": "symbol",
}
"""Name of a restricted type -> the type that it restricts."""

DESCRIPTORS: Final[dict[str, tuple[str, int]]] = {
    "delivery-annotations": ("amqp:delivery-annotations:map", 0x71),
    "message-annotations": ("amqp:message-annotations:map", 0x72),
    "application-properties": ("amqp:application-properties:map", 0x74),
    "data": ("amqp:data:binary", 0x75),
    "amqp-sequence": ("amqp:amqp-sequence:list", 0x76),
    "amqp-value": ("amqp:amqp-value:*", 0x77),
    "footer": ("amqp:footer:map", 0x78),
}
"""Name of a described restricted type (a section) -> symbol and code."""

CHOICES: Final[dict[str, tuple[bool | int | str, ...]]] = {
    "role": (False, True),
    "sender-settle-mode": (0, 1, 2),
    "receiver-settle-mode": (0, 1),
    "amqp-error": (
        "amqp:internal-error",
        "amqp:not-found",
        "amqp:unauthorized-access",
        "amqp:decode-error",
        "amqp:resource-limit-exceeded",
        "amqp:not-allowed",
        "amqp:invalid-field",
        "amqp:not-implemented",
        "amqp:resource-locked",
        "amqp:precondition-failed",
        "amqp:resource-deleted",
        "amqp:illegal-state",
        "amqp:frame-size-too-small",
    ),
    "connection-error": ("amqp:connection:forced", "amqp:connection:framing-error", "amqp:connection:redirect"),
    "session-error": (
        "amqp:session:window-violation",
        "amqp:session:errant-link",
        "amqp:session:handle-in-use",
        "amqp:session:unattached-handle",
    ),
    "link-error": (
        "amqp:link:detach-forced",
        "amqp:link:transfer-limit-exceeded",
        "amqp:link:message-size-exceeded",
        "amqp:link:redirect",
        "amqp:link:stolen",
    ),
    "terminus-durability": (0, 1, 2),
    "terminus-expiry-policy": ("link-detach", "session-end", "connection-close", "never"),
    "std-dist-mode": ("move", "copy"),
    "sasl-code": (0, 1, 2, 3, 4),
    "txn-capability": (
        "amqp:local-transactions",
        "amqp:distributed-transactions",
        "amqp:promotable-transactions",
        "amqp:multi-txns-per-ssn",
        "amqp:multi-ssns-per-txn",
    ),
    "transaction-error": ("amqp:transaction:unknown-id", "amqp:transaction:rollback", "amqp:transaction:timeout"),
}
"""Name of a restricted type -> its named values."""

ARCHETYPES: Final[dict[str, tuple[str, ...]]] = {
    "frame": ("open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close"),
    "source": ("source",),
    "target": ("target", "coordinator"),
    "delivery-state": ("received", "accepted", "rejected", "released", "modified", "declared", "transactional-state"),
    "section": (
        "delivery-annotations",
        "message-annotations",
        "application-properties",
        "data",
        "amqp-sequence",
        "amqp-value",
        "footer",
        "header",
        "properties",
    ),
    "message-id": ("message-id-ulong", "message-id-uuid", "message-id-binary", "message-id-string"),
    "address": ("address-string",),
    "outcome": ("accepted", "rejected", "released", "modified", "declared"),
    "lifetime-policy": (
        "delete-on-close",
        "delete-on-no-links",
        "delete-on-no-messages",
        "delete-on-no-links-or-messages",
    ),
    "sasl-frame": ("sasl-mechanisms", "sasl-init", "sasl-challenge", "sasl-response", "sasl-outcome"),
    "global-tx-id": (),
    "txn-id": ("transaction-id",),
}
"""Name of an archetype -> the types that provide it; empty for any type."""
