"""Events of muxers: declared, updated, deleted, their attachments, and the lossy draws."""

from typing import Final, final

from msgspec import Struct, json

from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, SizeBound, field_facts
from ambermq.engine.events.json_meta import encode_json
from ambermq.engine.events.line_template import LIFETIME, Choice
from ambermq.engine.events.user_meta import UserMeta, by_meta
from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.condition_text import argument_text
from ambermq.engine.model.muxer import MuxerKind, Options

__all__ = ["Attached", "Detached", "Drawn", "MuxerDeclared", "MuxerDeleted", "MuxerUpdated"]


@final
class MuxerDeclared(Struct):
    """A muxer was declared; its id is the offset of the event."""

    offset: int
    time_us: int
    name: str
    kind: MuxerKind
    options: Options = Options()
    by: str = ""
    """The user that caused it; empty if none is known."""


class _MuxerMeta(Struct, omit_defaults=True):
    name: str = ""
    options: Options | None = None
    by: str = ""


_decode_muxer: Final = json.Decoder(_MuxerMeta).decode


def _declared_meta(event: MuxerDeclared) -> bytes:
    return encode_json(_MuxerMeta(event.name, None if event.options == Options() else event.options, event.by))


def _read_declared(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> MuxerDeclared:
    muxer = _decode_muxer(meta)
    return MuxerDeclared(offset, time_us, muxer.name, MuxerKind(row[8]), muxer.options or Options(), muxer.by)


def _declared_facts(event: MuxerDeclared) -> Facts:
    facts: Facts = {"muxer": event.name, "class": MuxerKind(event.kind).name}
    options = event.options
    facts |= {"separator": options.separator} if options.separator != "." else {}
    facts |= {"probability": options.probability, "seed": options.seed} if event.kind == MuxerKind.LOSSY else {}
    return facts | ({"lifetime": options.lifetime.name.lower()} if options.lifetime else {})


@final
class MuxerUpdated(Struct):
    """A muxer got other options; a LOSSY muxer does not reset the count of its draws."""

    offset: int
    time_us: int
    muxer: int
    options: Options
    """All options, changed or not."""
    by: str = ""
    """The user that caused it; empty if none is known."""


def _read_updated(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> MuxerUpdated:
    keys = _decode_muxer(meta)
    return MuxerUpdated(offset, time_us, row[5], keys.options or Options(), keys.by)


def _updated_facts(event: MuxerUpdated) -> Facts:
    return {"muxer": event.muxer, "probability": event.options.probability, "seed": event.options.seed}


@final
class MuxerDeleted(Struct):
    """A muxer was deleted; its attachments were detached before."""

    offset: int
    time_us: int
    muxer: int
    by: str = ""
    """The user that caused it; empty if none is known."""


@final
class Attached(Struct):
    """A member was attached: the muxer sends it the messages that match the argument. The id is the event's offset."""

    offset: int
    time_us: int
    muxer: int
    member: int
    """The id of a queue or a muxer."""
    argument: Argument = None
    by: str = ""
    """The user that caused it; empty if none is known."""


@final
class Detached(Struct):
    """An attachment was removed."""

    offset: int
    time_us: int
    muxer: int
    member: int
    attachment: int
    """The id of the attachment; 0 in a record of version 0.1, where the argument identifies it."""
    argument: Argument = None
    by: str = ""
    """The user that caused it; empty if none is known."""


class _AttachmentMeta(Struct, omit_defaults=True):
    argument: str | None = None
    conditions: tuple[Condition, ...] | None = None
    attachment: int = 0
    destination: str = ""
    """The argument, as version 0.1 wrote it."""
    by: str = ""


_decode_attachment: Final = json.Decoder(_AttachmentMeta).decode


def _attachment_meta(event: Attached | Detached) -> bytes:
    argument, attachment = event.argument, event.attachment if type(event) is Detached else 0
    if isinstance(argument, tuple):
        return encode_json(_AttachmentMeta(conditions=argument, attachment=attachment, by=event.by))
    return encode_json(_AttachmentMeta(argument, attachment=attachment, by=event.by))


def _argument_of(keys: _AttachmentMeta) -> Argument:
    return keys.destination or (keys.argument if keys.conditions is None else keys.conditions)


def _read_attached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Attached:
    keys = _decode_attachment(meta)
    return Attached(offset, time_us, row[5], row[4], _argument_of(keys), keys.by)


def _read_detached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Detached:
    keys = _decode_attachment(meta)
    return Detached(offset, time_us, row[5], row[4], keys.attachment, _argument_of(keys), keys.by)


def _attachment_facts(event: Attached | Detached) -> Facts:
    return {"muxer": event.muxer, "member": event.member, "argument": argument_text(event.argument)}


@final
class Drawn(Struct):
    """A LOSSY muxer made the lossy draws of `count` messages; the publish events of the command hold the routes."""

    offset: int
    time_us: int
    muxer: int
    count: int


_ARGUMENT: Final = Choice("argument", " for {argument!r}", {"": ""})
_ATTACHMENT_FACTS: Final = (
    "`muxer` `member` `argument`; `queue` `queue_id` if the member is a queue; `by`, the user, if it is known"
)

MuxerEvent = MuxerDeclared | MuxerUpdated | MuxerDeleted | Attached | Detached | Drawn

TYPES: Final = (
    EventType(
        event=MuxerDeclared,
        number=4,
        name="muxer-declared",
        layout=Layout(aux="kind: the class", meta="JSON `{name, options, by}`"),
        meta=_declared_meta,
        json=_MuxerMeta,
        read=_read_declared,
        bound=SizeBound.NAMES,
        facts=_declared_facts,
        facts_text=(
            "`muxer` `class`; `separator` if it is not a dot; `probability` `seed` of a LOSSY muxer; "
            "`lifetime` if the muxer ends by itself; `by`, the user, if it is known"
        ),
        line=(
            "muxer {muxer!r} of class {class} declared",
            Choice("separator", ", separator {separator!r}"),
            Choice("probability", ", probability {probability}, seed {seed}"),
            LIFETIME,
        ),
    ),
    EventType(
        event=MuxerUpdated,
        number=24,
        name="muxer-updated",
        layout=Layout(ref="muxer", meta="JSON `{options, by}`"),
        meta=lambda event: encode_json(_MuxerMeta(options=event.options, by=event.by)),
        json=_MuxerMeta,
        read=_read_updated,
        bound=SizeBound.NAMES,
        facts=_updated_facts,
        facts_text="`muxer` `probability` `seed`; `by`, the user, if it is known",
        line=("muxer {muxer:muxer} updated, probability {probability}, seed {seed}",),
    ),
    EventType(
        event=MuxerDeleted,
        number=20,
        name="muxer-deleted",
        listed_after=4,
        layout=Layout(ref="muxer", meta="JSON `{by}`, or empty"),
        meta=by_meta,
        json=UserMeta,
        bound=SizeBound.NAMES,
        facts=field_facts("muxer"),
        facts_text="`muxer`; `by`, the user, if it is known",
        line=("muxer {muxer:muxer} deleted",),
    ),
    EventType(
        event=Attached,
        number=5,
        name="attached",
        layout=Layout(
            queue="member",
            ref="muxer",
            meta="JSON `{argument, by}` or `{conditions, by}`; `{destination}` in version 0.1",
        ),
        meta=_attachment_meta,
        json=_AttachmentMeta,
        read=_read_attached,
        keys=IndexKeys.NODE,
        bound=SizeBound.CONDITIONS,
        queue="member",
        facts=_attachment_facts,
        facts_text=_ATTACHMENT_FACTS,
        line=("{member:member} attached to {muxer:muxer}", _ARGUMENT),
    ),
    EventType(
        event=Detached,
        number=6,
        name="detached",
        layout=Layout(queue="member", ref="muxer", meta="the same, with `attachment`, its id"),
        meta=_attachment_meta,
        json=_AttachmentMeta,
        read=_read_detached,
        keys=IndexKeys.NODE,
        bound=SizeBound.CONDITIONS,
        queue="member",
        facts=_attachment_facts,
        facts_text=_ATTACHMENT_FACTS,
        line=("{member:member} detached from {muxer:muxer}", _ARGUMENT),
    ),
    EventType(
        event=Drawn,
        number=21,
        name="drawn",
        listed_after=6,
        layout=Layout(ref="muxer", count="count: draws"),
        facts=field_facts("muxer", "count"),
        facts_text="`muxer` `count`",
        line=("muxer {muxer:muxer} made the lossy draws of {count:messages}",),
    ),
)
