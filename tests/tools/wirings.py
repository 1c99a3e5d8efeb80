"""Random documents of wiring, and a broker in memory that has one."""

from hypothesis import strategies as st

from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.queue_template import QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.settings.queue_settings import Settings
from ambermq.tools.config.attachment_options import AttachmentOptions
from ambermq.tools.wiring.document import AttachmentEntry, MuxerEntry, QueueEntry, Wiring

__all__ = ["TEMPLATES", "documents"]

TEMPLATES = QueueTemplates(
    (
        QueueTemplate(
            Settings("orders", messages_max=7), "orders.#", (TemplateAttachment("TOPIC", "orders.#", "pattern"),)
        ),
        QueueTemplate(Settings("spare", messages_max=3)),
    )
).with_defaults()

_NAMES = ("a", "b", "c", "d")
_QUEUES = ("p", "q", "orders.eu", "/queues/muxer%3Ap", "a/b")


def _said(kind: MuxerKind) -> st.SearchStrategy[AttachmentOptions]:
    match kind:
        case MuxerKind.SIMPLE | MuxerKind.LOSSY:
            return st.just(AttachmentOptions())
        case MuxerKind.DESTINATION:
            return st.sampled_from(("x", "", "p", 'say "it"\n')).map(
                lambda text: AttachmentOptions(text, "destination")
            )
        case MuxerKind.WILD_DESTINATION:
            return st.sampled_from(("x", "*", "#")).map(lambda text: AttachmentOptions(text, "pattern"))
        case MuxerKind.SELECTOR:
            return st.sampled_from(("x = 1", "y LIKE 'é%'")).map(lambda text: AttachmentOptions(text, "selector"))
        case MuxerKind.PROPERTY | MuxerKind.WILD_PROPERTY:
            values = (None, True, 1, 1.0, "1", "eu") if kind is MuxerKind.PROPERTY else ("*", "eu")
            valued = st.builds(Condition, st.sampled_from(("x", "a=b")), st.just(True), st.sampled_from(values))
            conditions = st.lists(valued | st.just(Condition("urgent")), min_size=1, max_size=2)
            return conditions.map(lambda many: AttachmentOptions(tuple(many), "conditions"))


def _options(kind: MuxerKind) -> st.SearchStrategy[Options]:
    if kind is MuxerKind.LOSSY:
        return st.builds(Options, probability=st.sampled_from((0.0, 0.25, 1.0)), seed=st.integers(-3, 3))
    if kind in (MuxerKind.WILD_DESTINATION, MuxerKind.WILD_PROPERTY):
        return st.builds(Options, separator=st.sampled_from((".", "/", "::")))
    return st.just(Options())


@st.composite
def documents(draw: st.DrawFn) -> Wiring:
    """A document that a broker can have, each thing once; muxers pass on to later ones alone: nothing goes round."""
    muxers = []
    for name in draw(st.lists(st.sampled_from(_NAMES), unique=True)):
        kind = draw(st.sampled_from(MuxerKind))
        muxers.append(MuxerEntry(name, kind, draw(_options(kind))))
    queues = [
        QueueEntry(
            name,
            *draw(
                st.sampled_from(
                    (
                        (None, {}),
                        ("spare", {}),
                        ("spare", {"messages_max": 9}),
                        (None, {"messages_max": 0}),
                        (None, {"bytes_max": 5}),
                    )
                )
            ),
        )
        for name in draw(st.lists(st.sampled_from(_QUEUES), unique=True))
    ]
    addresses = [queue.name for queue in queues]
    for place, queue in enumerate(queues):
        # A target may be anywhere in the document, and targets may be a circle.
        target = draw(st.sampled_from((*(name for name in addresses if name != queue.name), "")))
        queues[place] = queue._replace(settings={**queue.settings, "dead_letter": target})
    attachments = []
    for place, muxer in enumerate((MuxerEntry("TOPIC", MuxerKind.WILD_DESTINATION), *muxers)):
        members = [f"muxer:{later.name}" for later in muxers[place:]] + [queue.name for queue in queues]
        if members:
            count = draw(st.integers(0, 3))
            attachments += [
                AttachmentEntry(muxer.name, draw(st.sampled_from(members)), draw(_said(muxer.kind)))
                for _ in range(count)
            ]
    distinct = {repr(one): one for one in attachments}
    return Wiring(tuple(muxers), tuple(queues), tuple(distinct.values()))
