"""The suspended links of one connection whose session, or whose connection, has not ended.

Rule. Their timeouts begin with that end. There are at most _LINKS_MAX: the timeout of the oldest begins with one more.
"""

from typing import Final, final

from ambermq.protocol.amqp10.endpoints import SessionEndpoint

__all__ = ["LinkScopes"]

_LINKS_MAX: Final = 4096
_CUT_TAGS_MAX: Final = 256


@final
class LinkScopes:
    """The suspended links of one connection by the engine's ids, and the tags of deliveries that were cut off."""

    __slots__ = ("_cut_tags", "_links")

    def __init__(self) -> None:
        self._links: dict[int, SessionEndpoint | None] = {}
        """The session that a link ends with; None: the connection."""
        self._cut_tags: dict[str, bytes] = {}
        """The delivery-tags of partial deliveries by the names of their links, whose senders may resume them."""

    def add(self, link: int, session: SessionEndpoint | None) -> tuple[int, ...]:
        """Add a link; return the links whose time begins now, because there are too many."""
        self._links[link] = session
        if len(self._links) <= _LINKS_MAX:
            return ()
        oldest = next(iter(self._links))
        del self._links[oldest]
        return (oldest,)

    def end_session(self, session: SessionEndpoint) -> tuple[int, ...]:
        """Return the links that end with a session, and forget them."""
        ended = tuple([link for link, one in self._links.items() if one is session])
        for link in ended:
            del self._links[link]
        return ended

    def end(self) -> tuple[int, ...]:
        """Return all links, and forget them: the connection has ended."""
        ended = tuple(self._links)
        self._links = {}
        return ended

    def add_cut(self, name: str, tag: bytes) -> None:
        """Add the tag of a delivery of which not all frames had arrived; nothing of it is stored."""
        if tag and len(self._cut_tags) < _CUT_TAGS_MAX:
            self._cut_tags[name] = tag

    def take_cut(self, name: str) -> bytes:
        """Return the tag of such a delivery, and forget it; empty for none."""
        return self._cut_tags.pop(name, b"")
