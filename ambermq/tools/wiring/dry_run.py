"""A virtual host in memory with a broker's wiring: a dry run of a change.

Rule: the dry run refuses what the broker would refuse, with the same code, and sends nothing to the broker.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from ambermq.engine.address import queue_name
from ambermq.engine.commands import Command, DeclareMuxer, DeclareQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.decide import decide, started
from ambermq.engine.decide.wiring import existing_muxer, member_id
from ambermq.engine.effects import Answered, RefusedCommand, Unfinished
from ambermq.engine.errors import Refused
from ambermq.engine.events import Attached, QueueConfigured
from ambermq.engine.fold.apply import apply
from ambermq.engine.model.queue_template import NORMAL, QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.routing.router import WIRING, Router
from ambermq.engine.settings.queue_settings import new_settings
from ambermq.engine.settings.setting_table import changed_settings
from ambermq.tools.config.attachment_options import options_of
from ambermq.tools.wiring.document import AttachmentEntry, QueueEntry, Wiring, settings_in

__all__ = ["DryRun", "templates_of"]

_ANY: Final = 1 << 40
_NO_COUNTS: Final = EngineConfig(queues_max=_ANY, muxers_max=_ANY, attachments_max=_ANY)
"""No limits on counts: only the broker checks those, since other clients create objects too."""
_SHAPES: Final = ("argument_bytes_max", "chain_muxers_max", "conditions_max", "name_bytes_max")
"""The limits on single objects."""


class DryRun:
    """A virtual host without a log."""

    def __init__(
        self,
        templates: QueueTemplates,
        mode: VhostMode = VhostMode.AUTOMATIC,
        limits: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Create a virtual host with the predeclared wiring of a mode; queues get their settings from `templates`.

        `limits` are those of the broker; the defaults apply to missing ones.
        """
        self.templates = templates
        shapes: dict[str, Any] = {name: limits[name] for name in _SHAPES if name in limits}
        self._config = replace(_NO_COUNTS, templates=templates, **shapes)
        self.state = EMPTY_STATE.with_fields(mode=mode)
        self.router = Router()
        self._end = 0
        self._apply(started(self.state, self._context(self._config)))

    def load(self, wiring: Wiring) -> None:
        """Add the wiring that a broker has, without the attachments of templates and without limits."""
        names = sorted({queue.template or NORMAL for queue in wiring.queues})
        bare = QueueTemplates(tuple(QueueTemplate(new_settings(name)) for name in names)).with_defaults()
        no_limits: dict[str, Any] = dict.fromkeys(_SHAPES, _ANY)
        config = replace(_NO_COUNTS, templates=bare, **no_limits)
        for muxer in wiring.muxers:
            self._do(DeclareMuxer("", muxer.name, muxer.kind, muxer.options), config)
        for queue in wiring.queues:
            self._load_queue(queue, config)
        for one in wiring.attachments:
            self._load_attachment(one, config)

    def do(self, command: Command) -> Mapping[str, Any]:
        """Apply a command and return its answer. Raises Refused."""
        return self._do(command, self._config)

    def _load_queue(self, entry: QueueEntry, config: EngineConfig) -> None:
        """Declare a queue, and set its dead-letter target without a decision: the target follows, or is gone."""
        settings = changed_settings(new_settings(entry.template or NORMAL), entry.settings)
        self._do(DeclareQueue("", entry.name, settings.with_values({"dead_letter": ""})), config)
        if settings.dead_letter:
            queue = self.state.queue_names[queue_name(entry.name, name_bytes_max=_ANY)]
            self._apply([QueueConfigured(self._end, 0, queue, settings)])

    def _load_attachment(self, entry: AttachmentEntry, config: EngineConfig) -> None:
        """Attach without a decision: an older broker may have accepted what is refused now."""
        muxer, member = existing_muxer(self.state, entry.muxer, config).id, member_id(self.state, entry.member, config)
        if self.router.find(self.state, muxer, member, entry.options.argument) is None:
            self._apply([Attached(self._end, 0, muxer, member, entry.options.argument)])

    def _do(self, command: Command, config: EngineConfig) -> Mapping[str, Any]:
        events, effects = decide(self.state, command, self._context(config))
        answer = effects[-1]
        if isinstance(answer, Unfinished):
            self._apply(events)
            return self._do(answer.command, config)
        if isinstance(answer, RefusedCommand):
            raise Refused(answer.condition, answer.description)
        assert isinstance(answer, Answered), "a wiring command has an answer"
        self._apply(events)
        answered: Mapping[str, Any] = answer.value
        return answered

    def _context(self, config: EngineConfig) -> DecisionContext:
        return DecisionContext(0, self._end, _ANY, config, self.router)

    def _apply(self, events: Iterable[Any]) -> None:
        for event in events:
            self.state = apply(self.state, event)
            self._end = event.offset + 1
            if isinstance(event, WIRING):
                self.router.apply_event(event, self.state)


def templates_of(rows: Iterable[Mapping[str, Any]]) -> QueueTemplates:
    """Return a broker's templates from their attributes in `$management`."""
    return QueueTemplates(tuple(map(_template, rows))).with_defaults()


def _template(row: Mapping[str, Any]) -> QueueTemplate:
    attach = []
    for one in row["attach"]:
        options = options_of(one)
        attach.append(TemplateAttachment(one["muxer"], options.argument, options.called))
    return QueueTemplate(changed_settings(new_settings(row["name"]), settings_in(row)), row["pattern"], tuple(attach))
