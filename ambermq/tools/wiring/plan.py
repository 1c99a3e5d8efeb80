"""The changes that give a broker the wiring of a document, found by a dry run of the document.

Rule 1. An equal object stays, so a second run changes nothing.
Rule 2. An object with other settings is updated if that is possible; else it is a conflict, and no object is replaced.
Rule 3. Objects that the document does not have are listed, and removed only with `prunes`: attachments, then muxers
        without producers, and queues without messages and consumers. A queue in the document stands for the attachments
        of its template too.
Rule 4. Additions come before removals, so that messages always have a route. If an addition would make a cycle, the
        removals of attachments come first.
Rule 5. A dead-letter queue of the document is declared before the queues that name it. In a circle of them one queue
        gets its target afterwards, as an update.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from ambermq.engine.errors import EngineError, Refused
from ambermq.engine.history.updatable_settings import differing, values_of, values_text
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.muxer import QUEUE_MUXER, Muxer
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_template import QueueTemplates
from ambermq.engine.model.state import State
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.settings.setting_table import changed_settings, values_of_settings
from ambermq.tools.config.attachment_options import options_text
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
    """The kinds of differences between a document and a broker."""

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
    """The reason of a conflict."""
    values: Mapping[str, tuple[Any, Any]] = MappingProxyType({})
    """The values of an update by name: before and after."""

    @property
    def sign(self) -> str:
        """The sign in a listing."""
        return _SIGNS[self.kind]

    @property
    def noun(self) -> str:
        """The kind of the object."""
        return {MuxerEntry: "muxer", QueueEntry: "queue", AttachmentEntry: "attachment"}[type(self.entry)]

    @property
    def text(self) -> str:
        """The difference in one line, without its sign."""
        match self.entry:
            case MuxerEntry(name, kind):
                text = f"muxer {name} ({kind.text})"
            case QueueEntry(name, template):
                text = f"queue {name}" + (f" (template {template})" if template else "")
            case AttachmentEntry(muxer, member, attachment_options):
                text = f"{muxer} -> {member}" + (
                    f": {options_text(attachment_options)}" if attachment_options.argument else ""
                )
        more = self.reason or values_text(self.values)
        return f"{text}: {more}" if more else text


class Plan(NamedTuple):
    """All differences, in the order of their execution."""

    changes: tuple[Change, ...]

    def of(self, *kinds: ChangeKind) -> tuple[Change, ...]:
        """Return the changes of some kinds."""
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
    """Return the differences between a broker and a document; with `prunes` removals are part of the dry run.

    The document has each object once, as `read_wiring` checks; with duplicates each run would find differences.
    `limits` are those of the broker.
    Raises ToolError if a part of the document is impossible, with its place in the file at `path`.
    """
    try:
        return _Planner(present, wanted, templates, path, limits).plan(prunes=prunes, removes_first=False)
    except _CycleRefused as refused:
        if not prunes:
            raise refused.error from refused
        try:
            return _Planner(present, wanted, templates, path, limits).plan(prunes=prunes, removes_first=True)
        except _CycleRefused as again:
            raise again.error from again


class _CycleRefused(Exception):
    """An attachment would make a cycle; it may be possible after removals."""

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
        self._present = wiring_of(present)
        is_bare = all(row["name"] != QUEUE_MUXER for row in present.muxers)
        self._dry_run = DryRun(templates, VhostMode.ADVANCED if is_bare else VhostMode.AUTOMATIC, limits)
        self._dry_run.load(self._present)
        self._closing: list[tuple[int, QueueEntry]] = []
        self._names = {name for entry in wanted.queues if (name := _name_of(entry.name)) is not None}

    def plan(self, *, prunes: bool, removes_first: bool) -> Plan:
        kept = self._kept()
        surplus = [one for one in self._present.attachments if self._id(one) not in kept]
        nodes = [*self._rest_muxers(), *self._rest_queues()]
        changes = [*self._each("muxers", self._muxer), *self._each("queues", self._queue, self._ordered_queues())]
        changes += self._each("queues", self._queue, self._closing)
        if removes_first:
            changes += self._removed(surplus, prunes=prunes)
        changes += self._each("attachments", self._attachment)
        if not removes_first:
            changes += self._removed(surplus, prunes=prunes)
        return Plan((*changes, *self._removed(nodes, prunes=prunes)))

    def _ordered_queues(self) -> list[tuple[int, QueueEntry]]:
        """Return the queues with their numbers in the document, each behind its dead-letter queue."""
        entries = dict(enumerate(self._wanted.queues, 1))
        numbers = {name: one for one, entry in entries.items() if (name := _name_of(entry.name)) is not None}
        targets = {one: numbers.get(self._target_of(entry) or "") for one, entry in entries.items()}
        ordered: dict[int, QueueEntry] = {}
        for first in entries:
            chain: dict[int, None] = {}
            number: int | None = first
            while number is not None and number not in ordered and number not in chain:
                chain[number] = None
                number = targets[number]
            way = [*chain]
            if number in chain:
                begin = way.index(number)
                way[begin:] = self._opened(way[begin:], entries)
            ordered |= {one: entries[one] for one in reversed(way)}
        return list(ordered.items())

    def _opened(self, circle: list[int], entries: dict[int, QueueEntry]) -> list[int]:
        """Return a circle of dead-letter queues, each followed by its target, whose last one can be declared first.

        Its target exists; if none does, the last one loses its target, and gets it when all are declared.
        """
        for place, number in enumerate(circle):
            if self._dry_run.state.queue_named(self._target_of(entries[number]) or "") is not None:
                return circle[place + 1 :] + circle[: place + 1]
        last = entries[circle[-1]]
        self._closing.append((circle[-1], last))
        entries[circle[-1]] = last._replace(settings={**last.settings, "dead_letter": ""})
        return circle

    def _target_of(self, entry: QueueEntry) -> str | None:
        """Return the name of the dead-letter queue of a queue of the document, None if it has none."""
        try:
            return _name_of(self._settings(entry).dead_letter)
        except Refused:
            # The decision on the queue refuses it, with its place.
            return None

    def _each(
        self, name: str, decide: Callable[[Any], Change | None], entries: Iterable[tuple[int, Any]] | None = None
    ) -> Iterator[Change]:
        for number, entry in enumerate(getattr(self._wanted, name), 1) if entries is None else entries:
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
                    raise _CycleRefused(error) from refusal
                raise error from refusal
            if change is not None:
                yield change

    def _muxer(self, entry: MuxerEntry) -> Change | None:
        options = entry.options
        settings = (options.probability, options.seed, entry.kind, options.separator)
        update = UpdateMuxer("", entry.name, partial(_values, State.muxer_named, entry.name), *settings)
        return self._created_or_updated(entry, DeclareMuxer("", entry.name, entry.kind, options), update)

    def _queue(self, entry: QueueEntry) -> Change | None:
        settings = self._settings(entry)
        name = queue_name(entry.name, name_bytes_max=_NAME_BYTES_MAX)
        read = partial(_values, State.queue_named, name)
        update = UpdateQueue("", entry.name, read, values_of_settings(settings), settings.template)
        return self._created_or_updated(entry, DeclareQueue("", entry.name, settings), update)

    def _settings(self, entry: QueueEntry) -> Settings:
        templates = self._dry_run.templates
        template = templates.for_queue(queue_name(entry.name, name_bytes_max=_NAME_BYTES_MAX))
        if entry.template is not None:
            named = templates.named(entry.template)
            if named is None:
                known = ", ".join(one.name for one in templates.ordered)
                raise Refused("amqp:not-found", f"no template {entry.template!r}: there are {known}")
            template = named
        try:
            return changed_settings(template.settings, entry.settings)
        except EngineError as error:
            raise Refused("amqp:invalid-field", str(error)) from error

    def _attachment(self, entry: AttachmentEntry) -> Change | None:
        attachment_options = entry.options
        if entry.muxer in self._conflicts:
            # The muxer still has another class, so the dry run cannot check the attachment.
            return Change(ChangeKind.ADD, entry)
        return self._added(
            entry, AttachMember("", entry.muxer, entry.member, attachment_options.argument, attachment_options.called)
        )

    def _created_or_updated(
        self, entry: Entry, declare: DeclareMuxer | DeclareQueue, update: UpdateMuxer | UpdateQueue
    ) -> Change | None:
        """Return the change that creates or updates an object, None if it is equal; raise Refused if there is none."""
        try:
            return self._added(entry, declare)
        except Refused as refusal:
            if refusal.condition != "amqp:precondition-failed":
                raise
            before = update.read(self._dry_run.state)
            try:
                after = self._dry_run.do(update)
            except Refused as why:
                # What is there may change, but not to this: the second refusal names the setting.
                raise why from refusal
        return Change(ChangeKind.UPDATE, entry, values=differing(before, after))

    def _added(self, entry: Entry, command: Command) -> Change | None:
        return Change(ChangeKind.ADD, entry) if self._dry_run.do(command)["created"] else None

    def _removed(self, entries: list[Any], *, prunes: bool) -> Iterator[Change]:
        for entry in entries:
            if prunes:
                self._dry_run.do(_removal(entry))
            yield Change(ChangeKind.REMOVE, entry)

    def _rest_muxers(self) -> list[MuxerEntry]:
        names = {entry.name for entry in self._wanted.muxers}
        return [entry for entry in self._present.muxers if entry.name not in names]

    def _rest_queues(self) -> list[QueueEntry]:
        return [entry for entry in self._present.queues if _name_of(entry.name) not in self._names]

    def _kept(self) -> set[int | None]:
        """Return the present attachments that are in the document, or in the template of a queue in the document."""
        kept = {self._id(entry) for entry in self._wanted.attachments}
        for entry in self._present.queues:
            template = self._dry_run.templates.named(entry.template or "")
            if template is not None and _name_of(entry.name) in self._names:
                for one in template.attach:
                    kept.add(self._find(one.muxer, entry.name, one.argument))
        return kept

    def _id(self, entry: AttachmentEntry) -> int | None:
        return self._find(entry.muxer, entry.member, entry.options.argument)

    def _find(self, muxer: str, member: str, argument: Argument) -> int | None:
        """Return the id of a present attachment, None if there is none."""
        state = self._dry_run.state
        found = state.muxer_names.get(muxer)
        if member.startswith(MUXER_MEMBER):
            to = state.muxer_names.get(member.removeprefix(MUXER_MEMBER))
        else:
            to = state.queue_names.get(_name_of(member) or "")
        if found is None or to is None:
            return None
        attachment = self._dry_run.router.find(state, found, to, argument)
        return None if attachment is None else attachment.id


def _values(find: Callable[[State, str], Queue | Muxer | None], name: str, state: State) -> Mapping[str, Any]:
    """Return the updatable settings of a queue or muxer; empty if it does not exist."""
    one = find(state, name)
    return {} if one is None else values_of(one)


def _name_of(address: str) -> str | None:
    """Return the queue name in an address, None if the address is invalid."""
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
        case AttachmentEntry(muxer, member, attachment_options):
            return DetachMember("", muxer, member, attachment_options.argument)
