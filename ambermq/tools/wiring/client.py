"""What a broker can be asked about its wiring, over `$management`."""

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
    "attaching",
    "declaring_muxer",
    "deleting_muxer",
    "detaching",
    "managed_wiring",
    "options_given",
    "updating_muxer",
    "wiring_rows",
]

_MUXER: Final = "org.ambermq.muxer"
_ATTACHMENT: Final = "org.ambermq.attachment"
_TEMPLATE: Final = "org.ambermq.template"
_NODE: Final = "org.amqp.management"
_UNKNOWN: Final = (400, 501)
"""What a broker answers that does not know an operation."""


class WiringManagement(QueueManagement):
    """Requests about muxers, attachments, templates and routes, and about queues as well."""

    def muxers(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every muxer, the oldest first."""
        return self.rows(_MUXER)

    def muxer(self, name: str) -> dict[str, Any]:
        """Return a muxer's attributes."""
        return self.request("READ", _MUXER, {"name": name})[1]

    def declare_muxer(self, name: str, kind: MuxerKind, options: Options) -> bool:
        """Declare a muxer; returns whether it is new."""
        return self.request(*declaring_muxer(name, kind, options)[:4])[0] == 201

    def update_muxer(self, name: str, *, probability: float | None = None, seed: int | None = None) -> dict[str, Any]:
        """Let a LOSSY muxer draw by these, None: as before; returns its attributes, and whether that is new."""
        return self.request(*updating_muxer(name, probability=probability, seed=seed)[:4])[1]

    def delete_muxer(self, name: str, *, if_unused: bool = False, if_empty: bool = False) -> None:
        """Delete a muxer with its attachments and those by which messages come to it."""
        self.request(*deleting_muxer(name, if_unused=if_unused, if_empty=if_empty)[:4])

    def attachments(self, muxer: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every attachment, of one muxer or of all, in the order of attaching."""
        return self.rows(_ATTACHMENT, **({} if muxer is None else {"muxer": muxer}))

    def attach(self, muxer: str, member: str, said: AttachmentOptions) -> bool:
        """Let a muxer pass messages on to a member; returns whether that is new."""
        asked = attaching(muxer, member, said)
        return self.request(*asked[:4], where=asked.where)[0] == 201

    def detach(self, muxer: str, member: str, said: AttachmentOptions) -> None:
        """Let a muxer pass messages on to a member no more, by this argument."""
        asked = detaching(muxer, member, said)
        self.request(*asked[:4], where=asked.where)

    def detach_id(self, attachment: int) -> None:
        """Let the attachment of an id be gone, whatever it says; its member may be gone."""
        self.request("DELETE", _ATTACHMENT, {"name": str(attachment)})

    def limits(self) -> dict[str, int]:
        """Return what the broker's configuration allows wiring to be; nothing where it is too old to tell."""
        try:
            told = self.request("GET-LIMITS", _NODE, {})[1]
        except RequestRefused as refusal:
            if refusal.status not in _UNKNOWN:
                raise
            return {}
        return {name: int(value) for name, value in told.items()}

    def templates(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every queue template, in the order in which they are tried."""
        return self.rows(_TEMPLATE)

    def route(self, address: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return where a message of these fields would go."""
        return self.request("ROUTE", _NODE, {"name": address}, fields, where=address or "anonymous")[1]


@contextmanager
def managed_wiring(url: str | None, data: str | None) -> Iterator[WiringManagement]:
    """Connect to the broker that options and environment name; raises as `broker_url`, ToolError."""
    with LinkClient.connect(BrokerUrl.parse(broker_url(url, data))) as client:
        yield WiringManagement(client)


def wiring_rows(url: str | None, data: str | None, at: str | None = None) -> WiringRows:
    """Return the wiring that options and environment name, `at` a moment where one is given. Raises ToolError."""
    if at is not None:
        lower_priority()
        from ambermq.tools.wiring.past_wiring import rows_at  # noqa: PLC0415 - a quarter of a second that only --at needs

        return rows_at(url, data, at)
    with managed_wiring(url, data) as management:
        return WiringRows(list(management.muxers()), list(management.queues()), list(management.attachments()))


def declaring_muxer(name: str, kind: MuxerKind, options: Options) -> Request:
    """Return the request that declares a muxer."""
    return Request("CREATE", _MUXER, {"name": name}, {"class": kind.text, **options_given(options)})


def updating_muxer(name: str, *, probability: float | None = None, seed: int | None = None) -> Request:
    """Return the request that lets a LOSSY muxer draw by these; None stays as it is."""
    given = {"probability": probability, "seed": seed}
    return Request("UPDATE", _MUXER, {"name": name}, {key: value for key, value in given.items() if value is not None})


def deleting_muxer(name: str, *, if_unused: bool = False, if_empty: bool = False) -> Request:
    """Return the request that deletes a muxer."""
    return Request("DELETE", _MUXER, {"name": name, "if-unused": if_unused, "if-empty": if_empty})


def attaching(muxer: str, member: str, said: AttachmentOptions) -> Request:
    """Return the request that lets a muxer pass messages on to a member."""
    return Request("CREATE", _ATTACHMENT, {}, _attachment(muxer, member, said), f"{muxer} -> {member}")


def detaching(muxer: str, member: str, said: AttachmentOptions) -> Request:
    """Return the request that lets it pass on no more, by this argument."""
    return Request("DELETE", _ATTACHMENT, {}, _attachment(muxer, member, said), f"{muxer} -> {member}")


def options_given(options: Options) -> dict[str, Any]:
    """Return those of a muxer's options that are not what a muxer has anyway."""
    default = Options()
    named = {name: getattr(options, name) for name in ("separator", "probability", "seed")}
    return {name: value for name, value in named.items() if value != getattr(default, name)}


def _attachment(muxer: str, member: str, said: AttachmentOptions) -> dict[str, Any]:
    argument = said.argument
    if isinstance(argument, tuple):
        return {"muxer": muxer, "member": member, said.called: [_condition(one) for one in argument]}
    return {"muxer": muxer, "member": member, **({said.called: argument} if said.called else {})}


def _condition(condition: Condition) -> dict[str, Any]:
    return {"name": condition.name, **({"value": condition.value} if condition.has_value else {})}
