"""The fold of muxers: declared, updated, deleted, with their attachments and draws."""

from msgspec.structs import replace

from ambermq.engine.events import Attached, Detached, Drawn, MuxerDeclared, MuxerDeleted, MuxerUpdated
from ambermq.engine.fold.links import without_producers
from ambermq.engine.fold.tables import without_keys
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.muxer import Muxer
from ambermq.engine.model.state import State
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["attached", "detached", "drawn", "muxer_declared", "muxer_deleted", "muxer_updated"]


def muxer_declared(state: State, event: MuxerDeclared) -> State:
    """Return the state with a new muxer."""
    muxer = Muxer(event.offset, event.name, event.kind, event.options, PersistentMap())
    return state.with_fields(
        time_us=event.time_us,
        muxers=state.muxers.set(event.offset, muxer),
        muxer_names=state.muxer_names.set(event.name, event.offset),
    )


def muxer_updated(state: State, event: MuxerUpdated) -> State:
    """Return the state with other options of a muxer."""
    muxer = state.muxers.get(event.muxer)
    if muxer is None:
        return state
    return state.with_fields(
        time_us=event.time_us, muxers=state.muxers.set(muxer.id, replace(muxer, options=event.options))
    )


def attached(state: State, event: Attached) -> State:
    """Return the state with one more attachment of a muxer."""
    muxer = state.muxers.get(event.muxer)
    if muxer is None:
        return state
    muxers = state.muxers.set(muxer.id, muxer.attach(Attachment(event.offset, event.member, event.argument)))
    return state.with_fields(time_us=event.time_us, muxers=muxers)


def detached(state: State, event: Detached) -> State:
    """Return the state without an attachment of a muxer."""
    muxer = state.muxers.get(event.muxer)
    if muxer is None:
        return state
    gone = [event.attachment] if event.attachment else _attachments_like(muxer, event)
    for attachment in gone:
        muxer = muxer.detach(attachment)
    return state.with_fields(time_us=event.time_us, muxers=state.muxers.set(muxer.id, muxer))


def _attachments_like(muxer: Muxer, event: Detached) -> list[int]:
    """Return the attachments that a record of version 0.1 means. Such a record has no id of the attachment."""
    wanted = (event.member, event.argument)
    return [one.id for one in muxer.attachments.values() if (one.member, one.argument) == wanted]


def muxer_deleted(state: State, event: MuxerDeleted) -> State:
    """Return the state without a muxer and its producers."""
    muxer = state.muxers.get(event.muxer)
    if muxer is None:
        return state
    return without_producers(state, muxer.id).with_fields(
        time_us=event.time_us,
        muxers=state.muxers.delete(muxer.id),
        muxer_names=state.muxer_names.delete(muxer.name),
        draws=without_keys(state.draws, [muxer.id]),
    )


def drawn(state: State, event: Drawn) -> State:
    """Return the state after draws of a lossy muxer."""
    if event.muxer not in state.muxers:
        return state
    draws = state.draws.set(event.muxer, state.draws.get(event.muxer, 0) + event.count)
    return state.with_fields(time_us=event.time_us, draws=draws)
