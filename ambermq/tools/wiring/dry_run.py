"""A virtual host in memory that has a broker's wiring, where a change can be tried before it is made.

Rule: what the broker would refuse is refused here, by the same code, with nothing done to the broker.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from ambermq.engine.commands import Command, DeclareMuxer, DeclareQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.decide import decide, started
from ambermq.engine.decide.wiring import existing_muxer, member_id
from ambermq.engine.effects import Answered, RefusedCommand, Unfinished
from ambermq.engine.errors import Refused
from ambermq.engine.events import Attached
from ambermq.engine.fold.apply import apply
from ambermq.engine.model.queue import Settings
from ambermq.engine.model.queue_template import NORMAL, QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.routing.router import WIRING, Router
from ambermq.tools.config.attachment_options import said_by
from ambermq.tools.wiring.document import AttachmentEntry, Wiring

__all__ = ["DryRun", "templates_of"]

_ANY: Final = 1 << 40
_COUNTLESS: Final = EngineConfig(queues_max=_ANY, muxers_max=_ANY, attachments_max=_ANY)
"""How many of a kind a broker takes is for the broker to say, for others may make some meanwhile."""
_SHAPES: Final = ("argument_bytes_max", "chain_muxers_max", "conditions_max", "name_bytes_max")
"""What one thing may be."""


class DryRun:
    """A virtual host without a log."""

    def __init__(
        self,
        templates: QueueTemplates,
        mode: VhostMode = VhostMode.AUTOMATIC,
        limits: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Make one that has what a broker always has in this mode; queues are made from `templates`.

        `limits` are the broker's own, as it tells them; the defaults where it does not.
        """
        self.templates = templates
        shapes: dict[str, Any] = {name: limits[name] for name in _SHAPES if name in limits}
        self._config = replace(_COUNTLESS, templates=templates, **shapes)
        self.state = EMPTY_STATE.with_fields(mode=mode)
        self.router = Router()
        self._end = 0
        self._happened(started(self.state, self._moment(self._config)))

    def has(self, wiring: Wiring) -> None:
        """Let all of this be so, as on a broker that has it: templates attach nothing more, and no limit is asked."""
        names = sorted({queue.template or NORMAL for queue in wiring.queues})
        bare = QueueTemplates(tuple(QueueTemplate(Settings(name)) for name in names)).with_defaults()
        shapeless: dict[str, Any] = dict.fromkeys(_SHAPES, _ANY)
        config = replace(_COUNTLESS, templates=bare, **shapeless)
        for muxer in wiring.muxers:
            self._do(DeclareMuxer("", muxer.name, muxer.kind, muxer.options), config)
        for queue in wiring.queues:
            settings = Settings(queue.template or NORMAL, messages_max=queue.messages_max or 0)
            self._do(DeclareQueue("", queue.name, settings), config)
        for one in wiring.attachments:
            self._has(one, config)

    def do(self, command: Command) -> Mapping[str, Any]:
        """Let something happen; returns its answer. Raises Refused."""
        return self._do(command, self._config)

    def _has(self, entry: AttachmentEntry, config: EngineConfig) -> None:
        """Attach without asking: an older broker may have let be what would be refused by now."""
        muxer, member = existing_muxer(self.state, entry.muxer, config).id, member_id(self.state, entry.member, config)
        if self.router.find(self.state, muxer, member, entry.said.argument) is None:
            self._happened([Attached(self._end, 0, muxer, member, entry.said.argument)])

    def _do(self, command: Command, config: EngineConfig) -> Mapping[str, Any]:
        events, effects = decide(self.state, command, self._moment(config))
        answer = effects[-1]
        if isinstance(answer, Unfinished):
            self._happened(events)
            return self._do(answer.command, config)
        if isinstance(answer, RefusedCommand):
            raise Refused(answer.condition, answer.description)
        assert isinstance(answer, Answered), "wiring is answered"
        self._happened(events)
        answered: Mapping[str, Any] = answer.value
        return answered

    def _moment(self, config: EngineConfig) -> DecisionContext:
        return DecisionContext(0, self._end, _ANY, config, self.router)

    def _happened(self, events: Iterable[Any]) -> None:
        for event in events:
            self.state = apply(self.state, event)
            self._end = event.offset + 1
            if isinstance(event, WIRING):
                self.router.apply_event(event, self.state)


def templates_of(rows: Iterable[Mapping[str, Any]]) -> QueueTemplates:
    """Return a broker's templates by their attributes as `$management` tells them."""
    return QueueTemplates(tuple(map(_template, rows))).with_defaults()


def _template(row: Mapping[str, Any]) -> QueueTemplate:
    attach = []
    for one in row["attach"]:
        said = said_by(one)
        attach.append(TemplateAttachment(one["muxer"], said.argument, said.called))
    return QueueTemplate(Settings(row["name"], messages_max=row["messages_max"]), row["pattern"], tuple(attach))
