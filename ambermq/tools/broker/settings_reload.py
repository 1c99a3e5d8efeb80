"""The reload of the configuration in a running broker: all of it or nothing.

    SIGHUP, RELOAD of org.ambermq.config -> read all sources -> check -> apply the live keys -> log old and new values

Rule 1. A mistake in any source leaves everything as it is. The log and the answer have the mistakes.
Rule 2. Keys that need a restart keep their values. The log and the answer name them.
Rule 3. No log line and no answer has a password, or the password in a URL.
Rule 4. One reload runs at a time. Files are read in another thread, and values are applied in the loop's thread.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, final

import click
import structlog

from ambermq.engine.effects import NOW, Answered, CommandFailed, Effect, RefusedCommand
from ambermq.engine.model.queue_template import QueueTemplate
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.management.administration.configuration import (
    CONFIG_ATTRIBUTES,
    ConfigCommand,
    QueryConfig,
    ReloadConfig,
)
from ambermq.protocol.management.vhosts import AnswerPort
from ambermq.tools.config.effective_values import changed_keys, live_settings, rows_of, values_of
from ambermq.tools.config.resolution import InvalidSettings, Resolution, SettingsSource, check_together
from ambermq.tools.config.settings import Settings

__all__ = ["ReloadResult", "SettingsReload"]

_WAITING_MAX: Final = 16
"""The reloads that wait for the one before."""
_MISTAKES_SHOWN: Final = 20
_NAMES_SHOWN: Final = 200
"""The characters of a list of user names in a log line."""


@final
@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The result of a reload."""

    applied: tuple[str, ...]
    """The keys that have changed."""
    restart: tuple[str, ...]
    """The keys whose values need a restart."""
    faults: tuple[str, ...] = ()
    """The faults of hooks, which keep what they had."""


@final
class SettingsReload:
    """The configuration of one running broker; the loop's thread calls everything."""

    def __init__(self, source: SettingsSource, running: Resolution) -> None:
        """Begin with the configuration of the start, `running`."""
        self._source = source
        self._wanted = running
        self.settings = running.settings
        """The settings in use."""
        self.checks: list[Callable[[Resolution], None]] = []
        """Raise ToolError for settings that the broker cannot use."""
        self.appliers: list[Callable[[Settings, Settings], None]] = []
        """Take the settings before and after a reload; they do not fail."""
        self.preparations: list[Callable[[Settings, Settings], Awaitable[None]]] = []
        """Prepare for the settings before and after a reload what would take the loop too long."""
        self.hooks: list[Callable[[], str]] = []
        """Read other files again at each reload, such as certificates; each returns its fault, or an empty text."""
        self.flush: Callable[[], None] = _nothing
        """Sends an answer that was given outside a tick."""
        self._busy = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_signalled = False

    def signal(self) -> None:
        """Reload soon; signals before the reload begins are one."""
        if not self._is_signalled:
            self._is_signalled = True
            self._start(self._reload_by_signal())

    def ask(self, gateway: AnswerPort, command: ConfigCommand) -> None:
        """Carry out a request and answer `gateway`."""
        if isinstance(command, QueryConfig):
            gateway.carry_out([Answered(command.key, self._page(command), NOW)])
        else:
            if len(self._tasks) >= _WAITING_MAX:
                why = f"{_WAITING_MAX} reloads wait already: ask again later"
                gateway.carry_out([RefusedCommand(command.key, AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)])
                return
            self._start(self._answer(gateway, command))

    async def reload(self) -> ReloadResult:
        """Read the sources again and apply what changes live; raise ToolError with all mistakes if nothing changes."""
        async with self._busy:
            self._is_signalled = False
            try:
                wanted = await asyncio.to_thread(self._source.load)
                settings = live_settings(self.settings, wanted.settings)
                check_together(settings, "with the values that need a restart")
                for check in self.checks:
                    check(Resolution(settings, wanted.origins))
            except click.ClickException as error:
                _log_mistakes(error)
                raise
            for prepare in self.preparations:
                await prepare(self.settings, settings)
            return self._apply(wanted, settings)

    async def end(self) -> None:
        """Wait for the running reload."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    def rows(self) -> list[dict[str, Any]]:
        """Return the keys with their values, sources and pending values, without secrets."""
        return rows_of(Resolution(self.settings, self._wanted.origins), self._wanted.settings)

    def _apply(self, wanted: Resolution, settings: Settings) -> ReloadResult:
        before, self._wanted, self.settings = self.settings, wanted, settings
        for applier in self.appliers:
            applier(before, settings)
        log = structlog.get_logger()
        applied = [(key, *_shown_pair(key, before, settings)) for key in changed_keys(before, settings)]
        for key, old, new in applied:
            log.info("setting changed", key=key, old=old, new=new)
        restart = list(changed_keys(settings, wanted.settings))
        for key in restart:
            old, new = _shown_pair(key, settings, wanted.settings)
            log.warning("setting needs a restart", key=key, running=old, configured=new)
        faults = [fault for hook in self.hooks if (fault := hook())]
        for fault in faults:
            log.warning("reload incomplete", reason=fault)
        log.info("configuration reloaded", changed=len(applied), needs_restart=len(restart))
        return ReloadResult(tuple(key for key, *_ in applied), tuple(restart), tuple(faults))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        # The event loop holds only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload_by_signal(self) -> None:
        try:
            await self.reload()
        except click.ClickException:
            pass  # logged
        except Exception as mistake:  # noqa: BLE001 - a bug, which ends only this reload
            structlog.get_logger().error("reload failed", reason=repr(mistake))

    async def _answer(self, gateway: AnswerPort, command: ReloadConfig) -> None:
        effect: Effect
        key = command.key
        try:
            result = await self.reload()
        except InvalidSettings as invalid:
            text = "; ".join(mistake.message for mistake in invalid.mistakes)
            effect = RefusedCommand(key, AmqpCondition.PRECONDITION_FAILED, text)
        except click.ClickException as error:
            effect = RefusedCommand(key, AmqpCondition.PRECONDITION_FAILED, error.message)
        except Exception as mistake:  # noqa: BLE001 - a bug, which ends only the connection of the command
            effect = CommandFailed(command, mistake)
        else:
            lists = {"applied": result.applied, "restart": result.restart, "faults": result.faults}
            effect = Answered(key, {name: list(values) for name, values in lists.items()}, NOW)
        gateway.carry_out([effect])
        self.flush()

    def _page(self, command: QueryConfig) -> dict[str, Any]:
        rows = self.rows()
        page = rows[command.offset : command.offset + command.count]
        return {
            "attributeNames": list(CONFIG_ATTRIBUTES),
            "results": [[row[name] for name in CONFIG_ATTRIBUTES] for row in page],
            "total": len(rows),
        }


def _nothing() -> None:
    """Return at once."""


def _shown_pair(key: str, before: Settings, after: Settings) -> tuple[Any, Any]:
    """Return the old and the new value of a key for the log: of users the names, of templates those that differ."""
    if key == "users":
        old, new = before.users, after.users
        gone = sorted(old.keys() - new.keys())
        changed = [f"{name} (changed)" if name in old else name for name in new if old.get(name) != new[name]]
        return _names(gone), _names(changed)
    if key == "templates":
        old_templates, new_templates = before.engine.templates.ordered, after.engine.templates.ordered
        return (
            _names([_template_text(one) for one in old_templates if one not in new_templates]),
            _names([_template_text(one) for one in new_templates if one not in old_templates]),
        )
    return values_of(before)[key], values_of(after)[key]


def _template_text(template: QueueTemplate) -> str:
    return f"{template.name} (pattern {template.pattern!r}, messages_max {template.settings.messages_max})"


def _names(names: list[str]) -> str:
    return ", ".join(repr(name)[1:-1] for name in sorted(names))[:_NAMES_SHOWN]


def _log_mistakes(error: click.ClickException) -> None:
    mistakes: tuple[click.ClickException, ...] = error.mistakes if isinstance(error, InvalidSettings) else (error,)
    log = structlog.get_logger()
    for mistake in mistakes[:_MISTAKES_SHOWN]:
        log.error("configuration invalid", reason=mistake.message)
    log.error("configuration not reloaded", mistakes=len(mistakes), advice="run `ambermq config check FILE`")
