"""The large messages that arrive on the links of one connection: how many at a time, and which stand still."""

from collections.abc import Set as AbstractSet
from typing import Final, Protocol, final

from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.large.link_upload import LinkUpload
from ambermq.protocol.gateway.large.upload_windows import UploadWindows
from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["ConnectionUploads", "UploadGateway", "UploadingLink"]

_LOW_DISK: Final = "the broker has little room left on its disk"


class UploadingLink(Protocol):
    """A link on which large messages arrive."""

    @property
    def link(self) -> Receiver:
        """Its end of the link."""

    @property
    def upload(self) -> LinkUpload | None:
        """The message that is arriving; None between two of them."""


class UploadGateway(Protocol):
    """What the uploads of a connection need of the gateway of its virtual host."""

    @property
    def limits(self) -> ServerLimits:
        """The limits, which may change."""

    @property
    def low(self) -> AbstractSet[Resource]:
        """The resources of which little is left."""


@final
class ConnectionUploads:
    """The links on which a large message is arriving now."""

    __slots__ = ("_links", "gateway", "windows")

    def __init__(self, gateway: UploadGateway) -> None:
        self.gateway = gateway
        self._links: dict[UploadingLink, None] = {}
        self.windows = UploadWindows(gateway.limits)
        """The windows of the sessions on which they arrive."""

    def __len__(self) -> int:
        """Return the number of them."""
        return len(self._links)

    def begin(self, link: UploadingLink) -> Error | None:
        """Count a message that begins to arrive; return why it is refused, for its bytes are read in any case."""
        self._links[link] = None
        limit = self.gateway.limits.uploads_max
        if len(self._links) > limit:
            why = f"at most {limit} messages of a connection may arrive piece by piece at a time (uploads_max)"
        elif Resource.DISK in self.gateway.low:
            why = _LOW_DISK
        else:
            return None
        return Error(condition=Symbol(AmqpCondition.RESOURCE_LIMIT_EXCEEDED), description=why)

    def end(self, link: UploadingLink) -> None:
        """Count the end of a message; nothing for a link without one."""
        self._links.pop(link, None)

    def idle(self, now_ms: int, *, is_read: bool) -> list[UploadingLink]:
        """Return the links whose messages stand still for longer than upload_idle_ms.

        `is_read` says whether the broker reads the socket: else the peer is not to blame, nor if its window is closed.
        """
        idle_ms, found = self.gateway.limits.upload_idle_ms, list[UploadingLink]()
        for one in self._links:
            upload, partial = one.upload, one.link.partial
            if upload is None or partial is None:
                continue
            if not is_read or one.link.session.windows.is_held:
                upload.restart_idle()
            elif upload.is_idle(partial.size, now_ms, idle_ms):
                found.append(one)
        return found
