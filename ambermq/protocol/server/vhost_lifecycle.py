"""Virtual hosts that come and go while the others are served.

Rule 1. One command is carried out at a time, in the order in which they came; so each sees what the one before it did.
Rule 2. What waits for the disk runs in another thread: making, recovering and deleting a log. The loop goes on.
Rule 3. A virtual host is served when the root manifest names it, and is served no more before it is dropped from it.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, final

from ambermq.engine.commands import ResetHost
from ambermq.engine.effects import NOW, Answered, CommandFailed, Effect, RefusedCommand
from ambermq.engine.errors import EngineError, Refused
from ambermq.engine.model.state import totals_of
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.log.errors import LogError, LogFailed
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST, check_name
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition, ConnectionCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.gateway import Gateway
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
from ambermq.protocol.server.lifecycle_server import LifecycleServer
from ambermq.protocol.server.vhost_runner import VhostRunner, VhostServices

__all__ = ["VhostLifecycle", "Vhosts"]


class Vhosts(Protocol):
    """What keeps the logs of virtual hosts. Called in other threads, one call at a time; all may raise LogError."""

    def prepare(self, name: str) -> str:
        """Return the name of a directory, not made yet, that may be filled for a new virtual host.

        Where too many are being filled, the one prepared first is deleted.
        """

    def create(self, name: str, mode: VhostMode) -> VhostServices:
        """Make an empty virtual host."""

    def adopt(self, name: str, directory: str) -> VhostServices:
        """Make one of what lies in a directory that was prepared. Raises EngineError too."""

    def delete(self, name: str, ground: VhostServices) -> None:
        """Close what a virtual host stands on, and delete all that it ever held."""


@final
class VhostLifecycle:
    """Answers commands about the virtual hosts of one server; the loop's thread calls everything."""

    def __init__(self, server: LifecycleServer, vhosts: Vhosts) -> None:
        self._server = server
        self._vhosts = vhosts
        self._busy = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    def gateway_of(self, hostname: str | None) -> Gateway:
        """Return the gateway of the virtual host that an open's hostname means; whatever names none means the default.

        So clients that put the broker's address there are served as ever.
        """
        name = (hostname or "").removeprefix(HOSTNAME_PREFIX)
        is_named = name != hostname and name in self._server.hosts
        return (self._server.hosts[name] if is_named else self._server.default).gateway

    def ask(self, gateway: AnswerPort, command: VhostCommand) -> None:
        """Carry a command out, when those before it are; `gateway` gets the answer."""
        task = asyncio.get_running_loop().create_task(self._carry_out(gateway, command))
        # The event loop itself keeps tasks by weak references.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Begin nothing more, and wait for what runs."""
        self._is_over = True
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _carry_out(self, gateway: AnswerPort, command: VhostCommand) -> None:
        async with self._busy:
            try:
                answer = None if self._is_over else await self._answer(command)
            except Refused as refused:
                answer = RefusedCommand(command.key, refused.condition, refused.description)
            except (LogFailed, OSError) as error:
                answer = RefusedCommand(command.key, AmqpCondition.INTERNAL_ERROR, str(error))
            except (LogError, EngineError) as error:
                answer = RefusedCommand(command.key, AmqpCondition.PRECONDITION_FAILED, str(error))
            except Exception as mistake:  # noqa: BLE001 - ours, and it costs the connection that has asked alone
                answer = CommandFailed(command, mistake)
            if answer is not None:
                self._tell(gateway, [answer])

    def _tell(self, gateway: AnswerPort, effects: Iterable[Effect]) -> None:
        """Let an answer leave; the gateway's host may be gone by now, and then so are its connections."""
        host = self._server.hosts.get(gateway.vhost)
        if host is not None and host.gateway is gateway:
            gateway.carry_out(effects)
            host.tick_soon()

    async def _answer(self, command: VhostCommand) -> Effect | None:
        """Return the answer, None where the virtual host's own engine gives it."""
        match command:
            case QueryVhosts():
                return Answered(command.key, self._page(command), NOW)
            case ReadVhost():
                return Answered(command.key, _attributes(self._host(command.name)), NOW)
            case PrepareVhost():
                self._check_new(command.name)
                directory = await asyncio.to_thread(self._vhosts.prepare, command.name)
                return Answered(command.key, {"name": command.name, "directory": directory}, NOW)
            case CreateVhost():
                return Answered(command.key, await self._create(command), NOW)
            case ResetVhost():
                host = self._host(command.name)
                host.engine.submit(ResetHost(command.key))
                host.tick_soon()
                return None
            case DeleteVhost():
                return Answered(command.key, await self._delete(command), NOW)

    async def _create(self, command: CreateVhost) -> Mapping[str, Any]:
        self._check_new(command.name)
        if command.directory:
            ground = await asyncio.to_thread(self._vhosts.adopt, command.name, command.directory)
        else:
            ground = await asyncio.to_thread(self._vhosts.create, command.name, command.mode)
        self._server.add_host(command.name, ground)
        return _attributes(self._server.hosts[command.name])

    async def _delete(self, command: DeleteVhost) -> Mapping[str, Any]:
        host, name = self._host(command.name), command.name
        if name == DEFAULT_VHOST:
            raise Refused(AmqpCondition.NOT_ALLOWED, "the default virtual host cannot be deleted: reset it")
        count = len(host.gateway.peers)
        if count and not command.force:
            raise Refused(AmqpCondition.PRECONDITION_FAILED, f"virtual host {name!r} has {count} connections")
        gone = _attributes(host)
        why = f"the virtual host {name!r} was deleted"
        error = Error(condition=Symbol(ConnectionCondition.CONNECTION_FORCED), description=why)
        ground = self._server.remove_host(name, error)
        await asyncio.to_thread(self._vhosts.delete, name, ground)
        return {"name": name, "connections": count, "messages": gone["messages"]}

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

    def _host(self, name: str) -> VhostRunner:
        host = self._server.hosts.get(name)
        if host is None:
            raise Refused(AmqpCondition.NOT_FOUND, f"no virtual host {name[:80]!r}")
        return host

    def _page(self, command: QueryVhosts) -> dict[str, Any]:
        hosts = list(self._server.hosts.values())
        rows = [_attributes(host) for host in hosts[command.offset : command.offset + command.count]]
        return {
            "attributeNames": list(VHOST_ATTRIBUTES),
            "results": [[row[name] for name in VHOST_ATTRIBUTES] for row in rows],
            "total": len(hosts),
        }


def _attributes(host: VhostRunner) -> dict[str, Any]:
    totals = totals_of(host.engine.state)
    log_id, mode = host.engine.log.log_id.hex(), host.engine.state.mode.text
    values = (host.name, len(host.gateway.peers), *totals.values(), log_id, mode)
    return dict(zip(VHOST_ATTRIBUTES, values, strict=True))
