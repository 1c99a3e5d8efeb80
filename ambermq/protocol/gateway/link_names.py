"""The names of the links of one virtual host: the last attach of a name has the link (transport, 2.6.1).

Rule 1. A name is the container id, the name of the link, and its direction. Containers without an id share no names.
Rule 2. A link is removed by itself, not by its name: another link may have the name in the meantime.
"""

from typing import final

from ambermq.protocol.amqp10.endpoints import LinkEndpoint
from ambermq.protocol.gateway.connection_peer import ConnectionPeer
from ambermq.protocol.gateway.links.attach_terms import Refusal

__all__ = ["LinkNames"]

_Name = tuple[str, str, bool]
"""Container id, link name, and whether we send."""


@final
class LinkNames:
    """The attached links of all connections by their names."""

    __slots__ = ("_links", "_name_bytes_max", "_names")

    def __init__(self, *, name_bytes_max: int) -> None:
        """Start without links. `name_bytes_max` bounds the name of a link, in bytes of UTF-8."""
        self._name_bytes_max = name_bytes_max
        self._links: dict[_Name, tuple[ConnectionPeer, LinkEndpoint]] = {}
        self._names: dict[LinkEndpoint, _Name] = {}

    def __len__(self) -> int:
        """Return the number of links with a name."""
        return len(self._links)

    def check(self, link: LinkEndpoint) -> None:
        """Raise Refusal for a link name that is too long."""
        size, bytes_max = len(link.name.encode()), self._name_bytes_max
        if size > bytes_max:
            why = f"a link name of {size} bytes, at most {bytes_max} (link_name_bytes_max)"
            raise Refusal("amqp:invalid-field", why)

    def find(self, container: str, link: LinkEndpoint) -> tuple[ConnectionPeer, LinkEndpoint] | None:
        """Return the attached link with the name of a new one, and its connection; None if there is none."""
        return self._links.get((container, link.name, link.is_sender))

    def add(self, peer: ConnectionPeer, link: LinkEndpoint) -> None:
        """Add a link by its name, unless its container has no id."""
        if peer.container:
            name = peer.container, link.name, link.is_sender
            self._links[name] = peer, link
            self._names[link] = name

    def remove(self, link: LinkEndpoint) -> None:
        """Remove a link, if it is here. Another link that has its name stays."""
        name = self._names.pop(link, None)
        known = None if name is None else self._links.get(name)
        if name is not None and known is not None and known[1] is link:
            del self._links[name]
