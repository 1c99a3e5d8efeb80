"""The links of one session, by our handle and by the peer's (transport, 2.6.2 to 2.6.6).

Rule 1. A handle is free again when both ends have detached.
Rule 2. A link has its name and direction alone within the connection: a new attach of the pair steals the link.
Rule 3. A link that the peer attached first is attached as soon as its owner accepts it.
"""

from __future__ import annotations

from ambermq.protocol.amqp10.errors import FramingError, LocalError, SessionFault
from ambermq.protocol.amqp10.events import LinkAttached, LinkDetached
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.session.parent_session import ParentSession
from ambermq.protocol.amqp10.spec import AmqpCondition, LinkCondition, Role, SessionCondition
from ambermq.protocol.amqp10.state_tables import LinkState

__all__ = ["LinkRegistry"]


class LinkRegistry:
    """The handles of one session."""

    __slots__ = ("_counted", "_local", "_session", "by_handle", "remote_handle_max")

    def __init__(self, session: ParentSession) -> None:
        self._session = session
        self._counted = 0
        self._local: dict[int, Link] = {}
        self.by_handle: dict[int, Link] = {}
        """The links by the peer's handle."""
        self.remote_handle_max = MASK
        """The highest handle that we may use."""

    def all(self) -> list[Link]:
        """Return the links that are not detached at both ends."""
        return list(self._local.values())

    def free_handle(self) -> int:
        """Return a free handle for a link of ours. Raises LocalError if there is none."""
        handle = self._lowest()
        if handle > self.remote_handle_max:
            raise LocalError(f"handle {handle} exceeds the peer's handle-max {self.remote_handle_max}")
        return handle

    def add(self, link: Link) -> None:
        """Add a link that is about to be attached."""
        self._session.connection.link_count += 1
        self._counted += 1
        self._local[link.handle] = link
        self._names[link.name, link.is_sender] = link

    def receive_attach(self, attach: Attach) -> None:
        """Process the peer's attach, an answer or a new link. Raises FramingError or SessionFault if it is illegal."""
        handle_max = self._session.connection.limits.handle_max
        if attach.handle > handle_max:
            raise FramingError(f"handle {attach.handle} exceeds handle-max {handle_max}")
        if attach.handle in self.by_handle:
            why = f"attach of {attach.name!r} on handle {attach.handle}, which is in use"
            raise SessionFault(SessionCondition.HANDLE_IN_USE, why)
        link = self._names.get((attach.name, attach.role == Role.RECEIVER))
        if link is not None and link.session is self._session and link.remote is None:
            self.by_handle[attach.handle] = link
            link.receive_attach(attach)
            if link.state is LinkState.DETACH_SENT:
                self.forget_name(link)
                return
        else:
            if link is not None:
                self._steal(link)
            link = self._new_link(attach)
        self._session.connection.events.append(LinkAttached(link))

    def receive_detach(self, detach: Detach) -> None:
        """Process the peer's detach; answer it if it is no answer. Raises SessionFault for a handle without a link."""
        link = self.by_handle.pop(detach.handle, None)
        if link is None:
            why = f"detach of handle {detach.handle}, which has no link"
            raise SessionFault(SessionCondition.UNATTACHED_HANDLE, why)
        if link.state is not LinkState.DETACH_SENT:
            link.answer_detach(closed=detach.closed)
            self._session.connection.events.append(LinkDetached(link, detach.closed, detach.error))
        link.state = LinkState.DETACHED
        self._session.release(link)
        del self._local[link.handle]
        self._count_out(1)
        self._session.connection.memory.change(-link.memory_bytes)

    def forget_name(self, link: Link) -> None:
        """Drop the name of a link: the next attach of this name is another link."""
        key = (link.name, link.is_sender)
        if self._names.get(key) is link:
            del self._names[key]

    def end(self) -> None:
        """Detach all links, because the session ends. `all` still returns them."""
        memory_bytes = 0
        for link in self._local.values():
            self.forget_name(link)
            link.drop_partial()
            link.shape = None
            link.state = LinkState.DETACHED
            memory_bytes += link.memory_bytes
            link.memory_bytes = 0
        self._session.connection.memory.change(-memory_bytes)
        self.by_handle = {}
        self._count_out(self._counted)

    @property
    def _names(self) -> dict[tuple[str, bool], Link]:
        return self._session.connection.links_by_name

    def _count_out(self, count: int) -> None:
        self._counted -= count
        self._session.connection.link_count -= count

    def _lowest(self) -> int:
        return next(number for number in range(len(self._local) + 1) if number not in self._local)

    def _steal(self, link: Link) -> None:
        link.fail(LinkCondition.STOLEN, f"link {link.name!r} was attached again")
        self.forget_name(link)

    def _new_link(self, attach: Attach) -> Link:
        handle = self._lowest()
        connection = self._session.connection
        if handle > self.remote_handle_max or connection.link_count >= connection.limits.links_max:
            raise SessionFault(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, f"no handle is free for link {attach.name!r}")
        kind = Sender if attach.role == Role.RECEIVER else Receiver
        link: Link = kind(self._session, attach.name, handle)
        self.add(link)
        self.by_handle[attach.handle] = link
        link.receive_attach(attach)
        return link
