"""The creation, reset and deletion of virtual hosts while the others are served.

Rule 1. Commands are carried out one at a time, in the order of their arrival. So each sees the result of the last one.
Rule 2. To create, recover or delete a log waits for the disk, so it runs in another thread.
Rule 3. A virtual host is served after the root manifest names it. It is no longer served when the manifest drops it.
"""

import asyncio
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, Protocol, final

from ambermq.engine.commands import EndSuspended, ResetHost
from ambermq.engine.effects import NOW, Answered, CommandFailed, Effect, RefusedCommand
from ambermq.engine.errors import EngineError, Refused, counted
from ambermq.engine.model.state import State
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.log.errors import LogError, LogFailed
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST, check_name
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition, ConnectionCondition, LinkCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.management.peers.ports import CloseEndpoint
from ambermq.protocol.management.peers.rows import links_of, sessions_of
from ambermq.protocol.management.peers.suspended_rows import suspended_name
from ambermq.protocol.management.vhosts import (
    HOSTNAME_PREFIX,
    VHOST_ATTRIBUTES,
    AnswerPort,
    CreateVhost,
    DeleteVhost,
    PrepareVhost,
    QueryVhosts,
    ReadVhost,
    ResetVhost,
    VhostCommand,
)
from ambermq.protocol.server.descriptors import connections_for
from ambermq.protocol.server.limited_log import shown
from ambermq.protocol.server.vhosts.lifecycle_server import LifecycleServer
from ambermq.protocol.server.vhosts.runner import VhostRunner
from ambermq.protocol.server.vhosts.services import VhostServices

__all__ = ["VhostLifecycle", "Vhosts"]

_COUNTED_MAX: Final = 2000
"""The queues that are counted in one turn of the event loop."""


class Vhosts(Protocol):
    """The store of the logs of virtual hosts. Other threads call it, one call at a time; each may raise LogError."""

    def prepare(self, name: str) -> str:
        """Return the name of a directory, not created yet, that may be filled for a new virtual host.

        If there are too many such directories, the one prepared first is deleted.
        """

    def create(self, name: str, mode: VhostMode) -> VhostServices:
        """Create an empty virtual host."""

    def adopt(self, name: str, directory: str) -> VhostServices:
        """Create a virtual host of a prepared and filled directory. Raises EngineError, too."""

    def delete(self, name: str, services: VhostServices) -> None:
        """Close the services of a virtual host, and delete its files."""


@final
class VhostLifecycle:
    """Answers commands about the virtual hosts of one server; the loop's thread calls everything."""

    def __init__(self, server: LifecycleServer, vhosts: Vhosts) -> None:
        self._server = server
        self._vhosts = vhosts
        self._busy = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_ended = False

    def gateway_of(self, hostname: str | None) -> Gateway:
        """Return the gateway of the virtual host that an open's hostname names, by default that of the default one.

        So a client that sends the address of the broker as hostname uses the default virtual host.
        """
        name = (hostname or "").removeprefix(HOSTNAME_PREFIX)
        is_named = name != hostname and name in self._server.hosts
        return (self._server.hosts[name] if is_named else self._server.default).gateway

    def peers(self) -> list[ConnectionGateway]:
        """Return the connections of all virtual hosts, in the order of acceptance."""
        return [socket.peer for socket in self._server.sockets.values()]

    def state_of(self, vhost: str) -> State | None:
        """Return the state of a virtual host; None if there is none of that name."""
        host = self._server.hosts.get(vhost)
        return None if host is None else host.engine.state

    def states(self) -> list[tuple[str, State]]:
        """Return the names and states of all virtual hosts."""
        return [(name, host.engine.state) for name, host in self._server.hosts.items()]

    def ask(self, gateway: AnswerPort, command: VhostCommand) -> None:
        """Carry out a command after the ones before it; `gateway` gets the answer."""
        task = asyncio.get_running_loop().create_task(self._carry_out(gateway, command))
        # The event loop holds only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Refuse further commands, and wait for the running one."""
        self._is_ended = True
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _carry_out(self, gateway: AnswerPort, command: VhostCommand) -> None:
        async with self._busy:
            try:
                answer = None if self._is_ended else await self._answer(command)
            except Refused as refused:
                answer = RefusedCommand(command.key, refused.condition, refused.description)
            except (LogFailed, OSError) as error:
                answer = RefusedCommand(command.key, AmqpCondition.INTERNAL_ERROR, str(error))
            except (LogError, EngineError) as error:
                answer = RefusedCommand(command.key, AmqpCondition.PRECONDITION_FAILED, str(error))
            except Exception as mistake:  # noqa: BLE001 - a bug, which ends only the connection of the command
                answer = CommandFailed(command, mistake)
            if answer is not None:
                self.send(gateway, [answer])

    def send(self, gateway: AnswerPort, effects: Iterable[Effect]) -> None:
        """Send an answer, unless the virtual host of the gateway was deleted with its connections."""
        host = self._server.hosts.get(gateway.vhost)
        if host is not None and host.gateway is gateway:
            gateway.carry_out(effects)
            host.tick_soon()

    async def _answer(self, command: VhostCommand) -> Effect | None:
        """Return the answer; None if the engine of the virtual host answers."""
        match command:
            case QueryVhosts():
                return Answered(command.key, await self._page(command), NOW)
            case ReadVhost():
                return Answered(command.key, await _attributes(self._host(command.name)), NOW)
            case PrepareVhost():
                self._check_new(command.name)
                directory = await asyncio.to_thread(self._vhosts.prepare, command.name)
                return Answered(command.key, {"name": command.name, "directory": directory}, NOW)
            case CreateVhost():
                return Answered(command.key, await self._create(command), NOW)
            case ResetVhost():
                host = self._host(command.name)
                host.engine.submit(ResetHost(command.key, by=command.by))
                host.tick_soon()
                return None
            case CloseEndpoint():
                closed = self._close(command)
                if closed is not None:
                    by, log = command.by, self._server.peer_log
                    which = {"noun": command.noun, "name": command.name, "user": shown(by or "-")}
                    log.info("closed on request", "", is_stranger=not by, **which)
                return Answered(command.key, closed, NOW)
            case DeleteVhost():
                return Answered(command.key, await self._delete(command), NOW)

    def _close(self, command: CloseEndpoint) -> dict[str, Any] | None:
        """Close a connection, session or link; return None if there is none of that name."""
        suspended = suspended_name(command.name) if command.noun == "link" else None
        if suspended is not None:
            return self._end_suspended(command.name, *suspended)
        found = self._find(command)
        if found is None:
            return None
        peer, session, link = found
        why = "an administrator closed it"
        peer.closed_by = command.by
        forced = Error(condition=Symbol(LinkCondition.DETACH_FORCED), description=why)
        if link is not None:
            peer.close_link(link, forced)
        elif session is not None:
            peer.close_session(session, forced)
        else:
            condition = Symbol(ConnectionCondition.CONNECTION_FORCED)
            self._server.sockets[peer].close(Error(condition=condition, description=why))
        if command.noun != "connection":
            peer.closed_by = ""
        self._server.hosts[peer.vhost].tick_soon()
        return {"name": command.name}

    def _end_suspended(self, name: str, vhost: str, link: int) -> dict[str, Any] | None:
        """End a suspended link; return None if there is none of that name."""
        host = self._server.hosts.get(vhost)
        if host is None or link not in host.engine.state.suspended:
            return None
        host.engine.submit(EndSuspended(link, is_forced=True))
        host.tick_soon()
        return {"name": name}

    def _find(self, command: CloseEndpoint) -> tuple[ConnectionGateway, Any, Any] | None:
        name, number = command.name, command.name.partition(".")[0]
        peers = (one for one in self.peers() if one.transport is not None and str(one.transport.id) == number)
        peer = next(peers, None)
        if peer is None or command.noun == "connection":
            return None if peer is None or name != number else (peer, None, None)
        if command.noun == "session":
            return next(((peer, session, None) for found, session in sessions_of(peer) if found == name), None)
        return next(((peer, session, link) for found, session, link in links_of(peer) if found == name), None)

    async def _create(self, command: CreateVhost) -> Mapping[str, Any]:
        self._check_new(command.name)
        if command.directory:
            services = await asyncio.to_thread(self._vhosts.adopt, command.name, command.directory)
        else:
            services = await asyncio.to_thread(self._vhosts.create, command.name, command.mode)
        self._server.add_host(command.name, services)
        return await _attributes(self._server.hosts[command.name])

    async def _delete(self, command: DeleteVhost) -> Mapping[str, Any]:
        host, name = self._host(command.name), command.name
        if name == DEFAULT_VHOST:
            raise Refused(AmqpCondition.NOT_ALLOWED, "the default virtual host cannot be deleted: reset it")
        attributes = await _attributes(host)
        # After the wait, in which a client may have connected.
        count = len(host.gateway.peers)
        if count and not command.force:
            why = f"virtual host {name!r} has {counted(count, 'connection')}"
            raise Refused(AmqpCondition.PRECONDITION_FAILED, why)
        why = f"the virtual host {name!r} was deleted"
        error = Error(condition=Symbol(ConnectionCondition.CONNECTION_FORCED), description=why)
        services = self._server.remove_host(name, error)
        await asyncio.to_thread(self._vhosts.delete, name, services)
        return {"name": name, "connections": count, "messages": attributes["messages"]}

    def _check_new(self, name: str) -> None:
        if name in self._server.hosts:
            raise Refused(AmqpCondition.PRECONDITION_FAILED, f"there is a virtual host {name!r} already")
        try:
            check_name(name)
        except LogError as error:
            raise Refused(AmqpCondition.INVALID_FIELD, str(error)) from error
        count, limit = len(self._server.hosts), self._server.server_limits.vhosts_max
        if count >= limit:
            raise Refused(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, f"at most {limit} virtual hosts (vhosts_max)")
        if self._server.watch.descriptors.is_low:
            why = "few file descriptors are free (descriptors_free_low)"
            raise Refused(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)
        descriptors_max, connections = self._server.descriptors_max, len(self._server.sockets)
        if connections > connections_for(count + 1, descriptors_max):
            why = f"{connections} connections leave too few of {descriptors_max} open files for its log (ulimit -n)"
            raise Refused(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)

    def _host(self, name: str) -> VhostRunner:
        host = self._server.hosts.get(name)
        if host is None:
            raise Refused(AmqpCondition.NOT_FOUND, f"no virtual host {name[:80]!r}")
        return host

    async def _page(self, command: QueryVhosts) -> dict[str, Any]:
        hosts = list(self._server.hosts.values())
        rows = [await _attributes(host) for host in hosts[command.offset : command.offset + command.count]]
        return {
            "attributeNames": list(VHOST_ATTRIBUTES),
            "results": [[row[name] for name in VHOST_ATTRIBUTES] for row in rows],
            "total": len(hosts),
        }


async def _attributes(host: VhostRunner) -> dict[str, Any]:
    """Return the attributes of a virtual host: its queues are counted in parts, in one state."""
    state = host.engine.state
    queues = iter(state.queues.values())
    messages = size = 0
    while part := list(islice(queues, _COUNTED_MAX)):
        messages += sum(queue.depth for queue in part)
        size += sum(queue.size for queue in part)
        if len(part) == _COUNTED_MAX:
            await asyncio.sleep(0)
    values = (host.name, len(host.gateway.peers), len(state.queues), messages, size)
    return dict(zip(VHOST_ATTRIBUTES, (*values, host.engine.log.log_id.hex(), state.mode.text), strict=True))
