"""Senders in receiver-settle-mode second: they settle after they know the outcome, so each message is stored once.

The SDKs of Azure ask for mode second, wait for a settled outcome, and never settle: they get mode first.
"""

from typing import Any, Final

from ambermq.protocol.amqp10.performatives.classes import Attach, Open
from ambermq.protocol.amqp10.spec import ReceiverSettleMode

__all__ = ["receiver_settle_mode"]

_NAMES: Final = ("user-agent", "product")
_AZURE: Final = ("azsdk", "azure")
_AZURE_KEYS: Final = "com.microsoft:"


def receiver_settle_mode(attach: Attach, remote_open: Open | None) -> int:
    """Return the receiver-settle-mode of a link whose peer sends."""
    if attach.rcv_settle_mode != ReceiverSettleMode.SECOND or _is_azure(attach, remote_open):
        return ReceiverSettleMode.FIRST
    return ReceiverSettleMode.SECOND


def _is_azure(attach: Attach, remote_open: Open | None) -> bool:
    keys = attach.properties if isinstance(attach.properties, dict) else {}
    if any(str(key).startswith(_AZURE_KEYS) for key in keys):
        return True
    found: Any = None if remote_open is None else remote_open.properties
    properties = found if isinstance(found, dict) else {}
    texts = [str(properties.get(name, "")).lower() for name in _NAMES]
    return any(one in text for one in _AZURE for text in texts)
