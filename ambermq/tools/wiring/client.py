"""Requests to a broker's `$management` node about wiring."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.tools.client.broker_option import broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement, Request, RequestRefused
from ambermq.tools.config.attachment_options import AttachmentOptions
from ambermq.tools.past.low_priority import lower_priority
from ambermq.tools.wiring.rows import WiringRows

__all__ = [
    "WiringManagement",
    "attachment_declaration",
    "attachment_deletion",
    "managed_wiring",
    "muxer_declaration",
    "muxer_deletion",
    "muxer_update",
    "options_given",
    "wiring_rows",
]

_MUXER: Final = "org.ambermq.muxer"
_ATTACHMENT: Final = "org.ambermq.attachment"
_TEMPLATE: Final = "org.ambermq.template"
_NODE: Final = "org.amqp.management"
_UNKNOWN: Final = (400, 501)
"""Status codes of a broker that does not know an operation."""


class WiringManagement(QueueManagement):
    """Requests about muxers, attachments, templates, routes and queues."""

    def muxers(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every muxer, the oldest first."""
        return self.rows(_MUXER)

    def muxer(self, name: str) -> dict[str, Any]:
        """Return a muxer's attributes."""
        return self.request("READ", _MUXER, {"name": name})[1]

    def declare_muxer(self, name: str, kind: MuxerKind, options: Options) -> bool:
        """Declare a muxer; return whether it is new."""
        return self.request(*muxer_declaration(name, kind, options)[:4])[0] == 201

    def update_muxer(self, name: str, *, probability: float | None = None, seed: int | None = None) -> dict[str, Any]:
        """Change probability and seed of a LOSSY muxer, None: unchanged; return its attributes and `updated`."""
        return self.request(*muxer_update(name, probability=probability, seed=seed)[:4])[1]

    def delete_muxer(self, name: str, *, if_unused: bool = False, if_empty: bool = False) -> None:
        """Delete a muxer with its attachments, and those of which it is the member."""
        self.request(*muxer_deletion(name, if_unused=if_unused, if_empty=if_empty)[:4])

    def attachments(self, muxer: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every attachment, of one muxer or of all, in the order of attaching."""
        return self.rows(_ATTACHMENT, **({} if muxer is None else {"muxer": muxer}))

    def attach(self, muxer: str, member: str, options: AttachmentOptions) -> bool:
        """Attach a member to a muxer; return whether the attachment is new."""
        request = attachment_declaration(muxer, member, options)
        return self.request(*request[:4], where=request.where)[0] == 201

    def detach(self, muxer: str, member: str, options: AttachmentOptions) -> None:
        """Delete the attachment of a member with this argument."""
        request = attachment_deletion(muxer, member, options)
        self.request(*request[:4], where=request.where)

    def detach_id(self, attachment: int) -> None:
        """Delete the attachment with this id, even if its member does not exist."""
        self.request("DELETE", _ATTACHMENT, {"name": str(attachment)})

    def limits(self) -> dict[str, int]:
        """Return the broker's limits on wiring; empty if the broker is too old for the request."""
        try:
            limits = self.request("GET-LIMITS", _NODE, {})[1]
        except RequestRefused as refusal:
            if refusal.status not in _UNKNOWN:
                raise
            return {}
        return {name: int(value) for name, value in limits.items()}

    def templates(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every queue template, in the order of their precedence."""
        return self.rows(_TEMPLATE)

    def route(self, address: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the route of a message with these fields."""
        return self.request("ROUTE", _NODE, {"name": address}, fields, where=address or "anonymous")[1]


@contextmanager
def managed_wiring(url: str | None, data: str | None) -> Iterator[WiringManagement]:
    """Connect to the broker in the options or the environment; raises as `broker_url`, and ToolError."""
    with LinkClient.connect(BrokerUrl.parse(broker_url(url, data))) as client:
        yield WiringManagement(client)


def wiring_rows(url: str | None, data: str | None, at: str | None = None) -> WiringRows:
    """Return the wiring of the broker in the options, now or at the moment `at`. Raises ToolError."""
    if at is not None:
        lower_priority()
        from ambermq.tools.wiring.past_wiring import rows_at  # noqa: PLC0415 - an import of 0.25 s that only --at needs

        return rows_at(url, data, at)
    with managed_wiring(url, data) as management:
        return WiringRows(list(management.muxers()), list(management.queues()), list(management.attachments()))


def muxer_declaration(name: str, kind: MuxerKind, options: Options) -> Request:
    """Return the request that declares a muxer."""
    return Request("CREATE", _MUXER, {"name": name}, {"class": kind.text, **options_given(options)})


def muxer_update(name: str, *, probability: float | None = None, seed: int | None = None) -> Request:
    """Return the request that changes probability and seed of a LOSSY muxer; None is unchanged."""
    given = {"probability": probability, "seed": seed}
    return Request("UPDATE", _MUXER, {"name": name}, {key: value for key, value in given.items() if value is not None})


def muxer_deletion(name: str, *, if_unused: bool = False, if_empty: bool = False) -> Request:
    """Return the request that deletes a muxer."""
    return Request("DELETE", _MUXER, {"name": name, "if-unused": if_unused, "if-empty": if_empty})


def attachment_declaration(muxer: str, member: str, options: AttachmentOptions) -> Request:
    """Return the request that attaches a member to a muxer."""
    return Request("CREATE", _ATTACHMENT, {}, _attachment(muxer, member, options), f"{muxer} -> {member}")


def attachment_deletion(muxer: str, member: str, options: AttachmentOptions) -> Request:
    """Return the request that deletes the attachment with this argument."""
    return Request("DELETE", _ATTACHMENT, {}, _attachment(muxer, member, options), f"{muxer} -> {member}")


def options_given(options: Options) -> dict[str, Any]:
    """Return the options of a muxer that differ from the defaults."""
    default = Options()
    named = {name: getattr(options, name) for name in ("separator", "probability", "seed")}
    return {name: value for name, value in named.items() if value != getattr(default, name)}


def _attachment(muxer: str, member: str, options: AttachmentOptions) -> dict[str, Any]:
    argument = options.argument
    if isinstance(argument, tuple):
        return {"muxer": muxer, "member": member, options.called: [_condition(one) for one in argument]}
    return {"muxer": muxer, "member": member, **({options.called: argument} if options.called else {})}


def _condition(condition: Condition) -> dict[str, Any]:
    return {"name": condition.name, **({"value": condition.value} if condition.has_value else {})}
