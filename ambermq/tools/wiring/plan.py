"""What is to be done so that a broker has the wiring of a document: found by doing it in a rehearsal first.

Rule 1. What is there alike stays as it is, so that what was done once is not done again.
Rule 2. What is there otherwise is updated where that can be, else it is a conflict: nothing that is there is changed
        into something else.
Rule 3. What the document does not name is told, and removed only where that was asked for (prune): attachments, then
        muxers that nobody sends to, and queues without messages and consumers. What a queue's template attaches it to
        counts as named with the queue.
Rule 4. What is added is added before anything is removed, so that messages always have a way; where that would send
        them round, attachments are removed first.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ambermq.engine.address import MUXER_MEMBER, queue_name
from ambermq.engine.commands import (
    AttachMember,
    Command,
    DeclareMuxer,
    DeclareQueue,
    DeleteMuxer,
    DeleteQueue,
    DetachMember,
    UpdateMuxer,
    UpdateQueue,
)
from ambermq.engine.errors import Refused
from ambermq.engine.history.updatable_settings import differing, values_of, values_text
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.muxer import QUEUE_MUXER, Muxer
from ambermq.engine.model.queue import Queue, Settings
from ambermq.engine.model.queue_template import QueueTemplates
from ambermq.engine.model.state import State
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.tools.config.attachment_options import said_text
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.wiring.document import AttachmentEntry, MuxerEntry, QueueEntry, Wiring, wiring_of
from ambermq.tools.wiring.dry_run import DryRun
from ambermq.tools.wiring.rows import WiringRows

__all__ = ["Change", "ChangeKind", "Plan", "plan_for"]

_CODES: Final = {"amqp:not-found": ExitCode.NOT_FOUND, "amqp:invalid-field": ExitCode.USAGE}
_NAME_BYTES_MAX: Final = 1 << 16

Entry = MuxerEntry | QueueEntry | AttachmentEntry


class ChangeKind(StrEnum):
    """What a document and a broker differ in."""

    ADD = "add"
    UPDATE = "update"
    REMOVE = "remove"
    CONFLICT = "conflict"


_SIGNS: Final = {ChangeKind.ADD: "+", ChangeKind.UPDATE: "~", ChangeKind.REMOVE: "-", ChangeKind.CONFLICT: "!"}


class Change(NamedTuple):
    """One difference."""

    kind: ChangeKind
    entry: Entry
    reason: str = ""
    """Of a conflict."""
    values: Mapping[str, tuple[Any, Any]] = MappingProxyType({})
    """What an update changes, by name: before and after."""

    @property
    def sign(self) -> str:
        """How a listing marks it."""
        return _SIGNS[self.kind]

    @property
    def noun(self) -> str:
        """What it is about."""
        return {MuxerEntry: "muxer", QueueEntry: "queue", AttachmentEntry: "attachment"}[type(self.entry)]

    @property
    def text(self) -> str:
        """The difference in one line, without its sign."""
        match self.entry:
            case MuxerEntry(name, kind):
                told = f"muxer {name} ({kind.text})"
            case QueueEntry(name, template):
                told = f"queue {name}" + (f" (template {template})" if template else "")
            case AttachmentEntry(muxer, member, said):
                told = f"{muxer} -> {member}" + (f": {said_text(said)}" if said.argument else "")
        more = self.reason or values_text(self.values)
        return f"{told}: {more}" if more else told


class Plan(NamedTuple):
    """All differences, in the order in which they are to be done."""

    changes: tuple[Change, ...]

    def of(self, *kinds: ChangeKind) -> tuple[Change, ...]:
        """Return those of some kinds."""
        return tuple(change for change in self.changes if change.kind in kinds)


def plan_for(
    present: WiringRows,
    wanted: Wiring,
    templates: QueueTemplates,
    *,
    path: str,
    prunes: bool,
    limits: Mapping[str, int] = MappingProxyType({}),
) -> Plan:
    """Return what differs between a broker and a document, with removals rehearsed where `prunes`.

    The document names each thing once, as one that was read does: else applying it would come to no end.
    `limits` are those that the broker tells.
    Raises ToolError where a part of the document cannot be, naming where it stands in the file at `path`.
    """
    try:
        return _Planner(present, wanted, templates, path, limits).plan(prunes=prunes, removes_first=False)
    except _RoundRefused as refused:
        if not prunes:
            raise refused.error from refused
        try:
            return _Planner(present, wanted, templates, path, limits).plan(prunes=prunes, removes_first=True)
        except _RoundRefused as again:
            raise again.error from again


class _RoundRefused(Exception):
    """An attachment was not allowed; it may be when others are gone."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(str(error))
        self.error = error


class _Planner:
    def __init__(
        self, present: WiringRows, wanted: Wiring, templates: QueueTemplates, path: str, limits: Mapping[str, int]
    ) -> None:
        self._wanted = wanted
        self._path = path
        self._conflicts: set[str] = set()
        self._has = wiring_of(present)
        is_bare = all(row["name"] != QUEUE_MUXER for row in present.muxers)
        self._rehearsal = DryRun(templates, VhostMode.ADVANCED if is_bare else VhostMode.AUTOMATIC, limits)
        self._rehearsal.has(self._has)
        self._names = {name for entry in wanted.queues if (name := _name_of(entry.name)) is not None}

    def plan(self, *, prunes: bool, removes_first: bool) -> Plan:
        kept = self._kept()
        gone = [one for one in self._has.attachments if self._id(one) not in kept]
        nodes = [*self._rest_muxers(), *self._rest_queues()]
        changes = [*self._each("muxers", self._muxer), *self._each("queues", self._queue)]
        if removes_first:
            changes += self._removed(gone, prunes=prunes)
        changes += self._each("attachments", self._attachment)
        if not removes_first:
            changes += self._removed(gone, prunes=prunes)
        return Plan((*changes, *self._removed(nodes, prunes=prunes)))

    def _each(self, name: str, decide: Callable[[Any], Change | None]) -> Iterator[Change]:
        for number, entry in enumerate(getattr(self._wanted, name), 1):
            try:
                change = decide(entry)
            except Refused as refusal:
                if refusal.condition == "amqp:precondition-failed":
                    self._conflicts.add(entry.name)
                    yield Change(ChangeKind.CONFLICT, entry, refusal.description)
                    continue
                where, code = f"{self._path} [[{name}]] {number}", _CODES.get(refusal.condition, ExitCode.FAILED)
                error = ToolError(refusal.description, where=where, code=code)
                if refusal.condition == "amqp:not-allowed":
                    raise _RoundRefused(error) from refusal
                raise error from refusal
            if change is not None:
                yield change

    def _muxer(self, entry: MuxerEntry) -> Change | None:
        options = entry.options
        said = (options.probability, options.seed, entry.kind, options.separator)
        update = UpdateMuxer("", entry.name, partial(_values, State.muxer_named, entry.name), *said)
        return self._made(entry, DeclareMuxer("", entry.name, entry.kind, options), update)

    def _queue(self, entry: QueueEntry) -> Change | None:
        settings = self._settings(entry)
        name = queue_name(entry.name, name_bytes_max=_NAME_BYTES_MAX)
        read = partial(_values, State.queue_named, name)
        update = UpdateQueue("", entry.name, read, settings.messages_max, settings.template)
        return self._made(entry, DeclareQueue("", entry.name, settings), update)

    def _settings(self, entry: QueueEntry) -> Settings:
        templates = self._rehearsal.templates
        template = templates.for_queue(queue_name(entry.name, name_bytes_max=_NAME_BYTES_MAX))
        if entry.template is not None:
            named = templates.named(entry.template)
            if named is None:
                known = ", ".join(one.name for one in templates.ordered)
                raise Refused("amqp:not-found", f"no template {entry.template!r}: there are {known}")
            template = named
        messages_max = template.settings.messages_max if entry.messages_max is None else entry.messages_max
        return Settings(template.name, messages_max=messages_max)

    def _attachment(self, entry: AttachmentEntry) -> Change | None:
        said = entry.said
        if entry.muxer in self._conflicts:
            # What its class would say cannot be tried: the muxer is of another one still.
            return Change(ChangeKind.ADD, entry)
        return self._added(entry, AttachMember("", entry.muxer, entry.member, said.argument, said.called))

    def _made(
        self, entry: Entry, declare: DeclareMuxer | DeclareQueue, update: UpdateMuxer | UpdateQueue
    ) -> Change | None:
        """Return how what a document names comes to be; Refused, as declaring is, where it cannot."""
        try:
            return self._added(entry, declare)
        except Refused as refusal:
            if refusal.condition != "amqp:precondition-failed":
                raise
            before = update.read(self._rehearsal.state)
            try:
                after = self._rehearsal.do(update)
            except Refused:
                raise refusal from None
        return Change(ChangeKind.UPDATE, entry, values=differing(before, after))

    def _added(self, entry: Entry, command: Command) -> Change | None:
        return Change(ChangeKind.ADD, entry) if self._rehearsal.do(command)["created"] else None

    def _removed(self, entries: list[Any], *, prunes: bool) -> Iterator[Change]:
        for entry in entries:
            if prunes:
                self._rehearsal.do(_removal(entry))
            yield Change(ChangeKind.REMOVE, entry)

    def _rest_muxers(self) -> list[MuxerEntry]:
        names = {entry.name for entry in self._wanted.muxers}
        return [entry for entry in self._has.muxers if entry.name not in names]

    def _rest_queues(self) -> list[QueueEntry]:
        return [entry for entry in self._has.queues if _name_of(entry.name) not in self._names]

    def _kept(self) -> set[int | None]:
        """Return the attachments that are there and that the document names, or a template of a queue that it names."""
        kept = {self._id(entry) for entry in self._wanted.attachments}
        for entry in self._has.queues:
            template = self._rehearsal.templates.named(entry.template or "")
            if template is not None and _name_of(entry.name) in self._names:
                for one in template.attach:
                    kept.add(self._find(one.muxer, entry.name, one.argument))
        return kept

    def _id(self, entry: AttachmentEntry) -> int | None:
        return self._find(entry.muxer, entry.member, entry.said.argument)

    def _find(self, muxer: str, member: str, argument: Argument) -> int | None:
        """Return the id of an attachment that is there, None where there is none."""
        state = self._rehearsal.state
        found = state.muxer_names.get(muxer)
        if member.startswith(MUXER_MEMBER):
            to = state.muxer_names.get(member.removeprefix(MUXER_MEMBER))
        else:
            to = state.queue_names.get(_name_of(member) or "")
        if found is None or to is None:
            return None
        attachment = self._rehearsal.router.find(state, found, to, argument)
        return None if attachment is None else attachment.id


def _values(find: Callable[[State, str], Queue | Muxer | None], name: str, state: State) -> Mapping[str, Any]:
    """Return what may change of a queue or muxer, nothing where there is none."""
    one = find(state, name)
    return {} if one is None else values_of(one)


def _name_of(address: str) -> str | None:
    """Return a queue's name by its address, None where it is none."""
    try:
        return queue_name(address, name_bytes_max=_NAME_BYTES_MAX)
    except Refused:
        return None


def _removal(entry: Entry) -> Command:
    match entry:
        case MuxerEntry(name):
            return DeleteMuxer("", name)
        case QueueEntry(name):
            return DeleteQueue("", name)
        case AttachmentEntry(muxer, member, said):
            return DetachMember("", muxer, member, said.argument)
