"""What is to be done so that a broker has a document's wiring, done to a broker in memory."""

import pytest
from hypothesis import given, settings

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
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.state import totals_of
from ambermq.engine.settings.setting_table import changed_settings
from ambermq.tools.config.attachment_options import AttachmentOptions
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.wiring.document import AttachmentEntry, MuxerEntry, QueueEntry, Wiring, wiring_of
from ambermq.tools.wiring.dry_run import DryRun, templates_of
from ambermq.tools.wiring.past_wiring import rows_of
from ambermq.tools.wiring.plan import Change, ChangeKind, Plan, plan_for
from ambermq.tools.wiring.rows import WiringRows
from tests.tools.wirings import TEMPLATES, documents


def bounded(name: str, template: str | None, messages_max: int) -> QueueEntry:
    """A queue with a maximum length."""
    return QueueEntry(name, template, {"messages_max": messages_max})


class Broker:
    """What changes are done to."""

    def __init__(self) -> None:
        self._engine = DryRun(TEMPLATES)

    @property
    def rows(self) -> WiringRows:
        return rows_of(self._engine.state)

    def plan(self, wanted: Wiring, *, prunes: bool = False) -> Plan:
        return plan_for(self.rows, wanted, TEMPLATES, path="w.toml", prunes=prunes)

    def apply(self, plan: Plan) -> None:
        for change in plan.changes:
            if change.kind is not ChangeKind.CONFLICT:
                self._engine.do(_command(change))


def _command(change: Change) -> Command:
    if change.kind is ChangeKind.UPDATE:
        values = {name: after for name, (_, after) in change.values.items()}
        assert not isinstance(change.entry, AttachmentEntry)
        if isinstance(change.entry, QueueEntry):
            return UpdateQueue("", change.entry.name, totals_of, values)
        return UpdateMuxer("", change.entry.name, totals_of, **values)
    is_added = change.kind is ChangeKind.ADD
    match change.entry:
        case MuxerEntry(name, kind, options):
            return DeclareMuxer("", name, kind, options) if is_added else DeleteMuxer("", name, if_unused=True)
        case QueueEntry(name, template, values):
            made = TEMPLATES.for_queue(name) if template is None else TEMPLATES.named(template)
            assert made is not None
            settings = changed_settings(made.settings, values)
            return DeclareQueue("", name, settings) if is_added else DeleteQueue("", name, if_unused=True)
        case AttachmentEntry(muxer, member, options):
            done = AttachMember if is_added else DetachMember
            return done("", muxer, member, options.argument, options.called)


@settings(max_examples=100, deadline=None)
@given(documents(), documents())
def test_what_was_pruned_and_applied_is_what_the_document_says(before: Wiring, wanted: Wiring) -> None:
    """Whatever was there, unless it was there otherwise; then nothing is left to be done."""
    broker = Broker()
    broker.apply(broker.plan(before))
    assert [change for change in broker.plan(before).changes if change.kind is not ChangeKind.REMOVE] == []
    plan = broker.plan(wanted, prunes=True)
    if plan.of(ChangeKind.CONFLICT):
        return
    broker.apply(plan)
    assert broker.plan(wanted, prunes=True).changes == ()
    found = wiring_of(broker.rows)
    assert {entry.name for entry in found.muxers} == {entry.name for entry in wanted.muxers}
    assert {entry.name for entry in found.queues} == {entry.name for entry in wanted.queues}
    by_template = {repr(AttachmentEntry("TOPIC", "orders.eu", AttachmentOptions("orders.#", "pattern")))}
    named = {repr(entry) for entry in wanted.attachments if not _is_by_name(entry)}
    assert named <= {repr(entry) for entry in found.attachments} <= named | by_template


def _is_by_name(entry: AttachmentEntry) -> bool:
    return entry.muxer == "QUEUE"


@settings(max_examples=100, deadline=None)
@given(documents(), documents())
def test_without_pruning_nothing_goes(before: Wiring, wanted: Wiring) -> None:
    """What was there is there afterwards, and what was exported is no different from what it was exported from."""
    broker = Broker()
    broker.apply(broker.plan(before))
    assert broker.plan(wiring_of(broker.rows)).changes == ()
    had = wiring_of(broker.rows)
    try:
        plan = broker.plan(wanted)
    except ToolError:
        return  # a name means something else there
    if plan.of(ChangeKind.CONFLICT):
        return  # nothing is applied then
    broker.apply(Plan(plan.of(ChangeKind.ADD, ChangeKind.UPDATE)))
    has = wiring_of(broker.rows)
    updated = {entry.name for entries in (wanted.muxers, wanted.queues) for entry in entries}
    for mine, theirs in zip(had, has, strict=True):
        kept = {repr(entry) for entry in mine if getattr(entry, "name", None) not in updated}
        assert kept <= {repr(entry) for entry in theirs}


def test_what_would_go_round_is_taken_down_first_where_that_helps() -> None:
    """A wire turned round needs the old one gone before the new one comes; without pruning it is refused."""
    broker = Broker()
    muxers = (MuxerEntry("a", MuxerKind.SIMPLE), MuxerEntry("b", MuxerKind.SIMPLE))
    broker.apply(broker.plan(Wiring(muxers, (), (AttachmentEntry("a", "muxer:b"),))))
    turned = Wiring(muxers, (), (AttachmentEntry("b", "muxer:a"),))
    with pytest.raises(ToolError, match=r"w.toml \[\[attachments\]\] 1: messages would loop: b -> a -> b"):
        broker.plan(turned)
    plan = broker.plan(turned, prunes=True)
    assert [change.sign for change in plan.changes] == ["-", "+"]
    broker.apply(plan)
    assert wiring_of(broker.rows) == turned


def test_messages_always_have_a_way() -> None:
    """Where nothing goes round, what is added is added before anything is removed."""
    broker = Broker()
    muxers, queues = (MuxerEntry("a", MuxerKind.DESTINATION),), (bounded("q", "spare", 3),)
    old, new = (AttachmentEntry("a", "q", AttachmentOptions(text, "destination")) for text in ("old", "new"))
    broker.apply(broker.plan(Wiring(muxers, queues, (old,))))
    plan = broker.plan(Wiring(muxers, queues, (new,)), prunes=True)
    assert [(change.sign, change.text) for change in plan.changes] == [("+", "a -> q: new"), ("-", "a -> q: old")]


def test_what_is_there_otherwise_is_a_conflict() -> None:
    """Told with what it is and what it should be."""
    broker = Broker()
    broker.apply(broker.plan(Wiring((MuxerEntry("a", MuxerKind.SIMPLE),), (bounded("q", "spare", 3),))))
    wanted = Wiring((MuxerEntry("a", MuxerKind.LOSSY),), (QueueEntry("q", "normal"),))
    muxer, queue = broker.plan(wanted).changes
    assert (muxer.sign, queue.sign) == ("!", "!")
    assert muxer.text == (
        "muxer a (lossy): muxer 'a' is of class simple, which does not change, but the request asks for class lossy: "
        "declare another muxer, and move the attachments"
    )
    assert queue.text.endswith(
        "queue 'q' was created from template 'spare', which does not change, but the request asks for template "
        "'normal': declare another queue from that one, and move to it"
    )


def test_dead_letter_queues_come_before_those_that_name_them() -> None:
    """Wherever the document has them, also those whose settings never change; a circle is closed by an update."""
    broker = Broker()
    queues = (
        QueueEntry("a", None, {"dead_letter": "b"}),
        QueueEntry("b", None, {"last_value": "key", "dead_letter": "/queues/c"}),
        QueueEntry("c", None, {"lock_ms": 5, "dead_letter": "d"}),
        QueueEntry("d", None, {"dead_letter": "c"}),
    )
    wanted = Wiring((), queues)
    plan = broker.plan(wanted)
    assert [(change.sign, change.text) for change in plan.changes] == [
        ("+", "queue d"),
        ("+", "queue c"),
        ("+", "queue b"),
        ("+", "queue a"),
        ("~", "queue d: dead_letter none -> c"),
    ]
    broker.apply(plan)
    assert broker.plan(wanted).changes == ()
    assert broker.plan(wiring_of(broker.rows)).changes == ()


def test_a_deleted_target_makes_no_queue_of_the_dry_run() -> None:
    """A broker may have a queue whose dead-letter queue is gone: the document declares that one again."""
    broker = Broker()
    wanted = Wiring((), (QueueEntry("a", None, {"dead_letter": "b"}), QueueEntry("b", None, {"dead_letter": "a"})))
    broker.apply(broker.plan(wanted))
    broker.apply(Plan((Change(ChangeKind.REMOVE, wanted.queues[1]),)))
    plan = broker.plan(wanted)
    assert [(change.sign, change.text) for change in plan.changes] == [("+", "queue b")]


def test_what_is_there_otherwise_and_may_change_is_updated() -> None:
    """With what it was and what it shall be; a template's own bound counts where the document names none."""
    broker = Broker()
    lossy = MuxerEntry("net", MuxerKind.LOSSY, Options(probability=0.9))
    queues = (
        bounded("p", "spare", 9),
        bounded("q", None, 5),
        bounded("/queues/%2Fx", None, 7),
    )
    broker.apply(broker.plan(Wiring((lossy,), queues, (AttachmentEntry("net", "q"),))))
    before = broker.rows
    lossier = MuxerEntry("net", MuxerKind.LOSSY, Options(probability=0.5, seed=-7))
    changed = (
        QueueEntry("p", "spare"),
        bounded("/queues/q", None, 6),
        bounded("/queues/%2Fx", None, 0),
    )
    wanted = Wiring((lossier,), changed)
    plan = broker.plan(wanted)
    assert [(change.sign, change.text) for change in plan.of(ChangeKind.UPDATE)] == [
        ("~", "muxer net (lossy): probability 0.9 -> 0.5, seed 0 -> -7"),
        ("~", "queue p (template spare): messages_max 9 -> 3"),
        ("~", "queue /queues/q: messages_max 5 -> 6"),
        ("~", "queue /queues/%2Fx: messages_max 7 -> 0"),
    ]
    broker.apply(Plan(plan.of(ChangeKind.ADD, ChangeKind.UPDATE)))
    assert broker.plan(wanted).of(ChangeKind.ADD, ChangeKind.UPDATE, ChangeKind.CONFLICT) == ()
    after = broker.rows
    assert [row["id"] for row in after.muxers] == [row["id"] for row in before.muxers]
    assert [row["id"] for row in after.queues] == [row["id"] for row in before.queues]
    assert after.attachments == before.attachments


def test_what_cannot_be_is_no_conflict_with_what_is_there() -> None:
    """No update would do it either: the file is wrong."""
    broker = Broker()
    broker.apply(broker.plan(Wiring((), (QueueEntry("q"),))))
    with pytest.raises(ToolError, match=r"\[\[queues\]\] 1: messages_max: expected a whole number") as wrong:
        broker.plan(Wiring((), (bounded("q", None, 1 << 63),)))
    assert wrong.value.exit_code == ExitCode.USAGE


def test_what_is_attached_to_a_conflict_is_told_as_well() -> None:
    """It cannot be tried, but it is no other error."""
    broker = Broker()
    broker.apply(broker.plan(Wiring((MuxerEntry("a", MuxerKind.SIMPLE),), (QueueEntry("q"),))))
    attachment = AttachmentEntry("a", "q", AttachmentOptions("x", "destination"))
    wanted = Wiring((MuxerEntry("a", MuxerKind.DESTINATION),), (QueueEntry("q"),), (attachment,))
    assert [change.sign for change in broker.plan(wanted).changes] == ["!", "+"]


@pytest.mark.parametrize(
    ("wanted", "words", "code"),
    [
        (
            Wiring((MuxerEntry("a/b", MuxerKind.SIMPLE),)),
            r"w.toml \[\[muxers\]\] 1: a muxer's name has no '/'",
            ExitCode.USAGE,
        ),
        (Wiring((MuxerEntry("a" * 256, MuxerKind.SIMPLE),)), "1 to 255 bytes", ExitCode.USAGE),
        (
            Wiring((), (bounded("q", None, 1 << 63),)),
            r"queues\]\] 1: messages_max: expected a whole number",
            ExitCode.USAGE,
        ),
        (
            Wiring(
                (), (QueueEntry("q"),), (AttachmentEntry("QUEUE", "q", AttachmentOptions("\ud800", "destination")),)
            ),
            r"attachments\]\] 1: .* compares with text of Unicode",
            ExitCode.USAGE,
        ),
        (Wiring((), (QueueEntry("/x"),)), r"\[\[queues\]\] 1: no node at '/x'", ExitCode.NOT_FOUND),
        (Wiring((), (QueueEntry("q", "none"),)), "no template 'none': there are orders, spare,", ExitCode.NOT_FOUND),
        (
            Wiring((), (), (AttachmentEntry("none", "q"),)),
            r"\[\[attachments\]\] 1: no muxer 'none'",
            ExitCode.NOT_FOUND,
        ),
        (
            Wiring((), (), (AttachmentEntry("TOPIC", "q", AttachmentOptions("#", "pattern")),)),
            "no queue 'q'",
            ExitCode.NOT_FOUND,
        ),
        (
            Wiring((), (QueueEntry("q"),), (AttachmentEntry("TOPIC", "q", AttachmentOptions("a*", "pattern")),)),
            "stands for whole words",
            ExitCode.USAGE,
        ),
        (
            Wiring(
                (MuxerEntry("s", MuxerKind.SELECTOR),),
                (QueueEntry("q"),),
                (AttachmentEntry("s", "q", AttachmentOptions("x = = 1", "selector")),),
            ),
            "character 4",
            ExitCode.USAGE,
        ),
        (
            Wiring(
                (MuxerEntry("p", MuxerKind.PROPERTY),),
                (QueueEntry("q"),),
                (AttachmentEntry("p", "q", AttachmentOptions((Condition("header.bogus"),), "conditions")),),
            ),
            r"attachments\]\] 1: .* found 'header.bogus': the section header has durable, priority",
            ExitCode.USAGE,
        ),
        (
            Wiring((), (QueueEntry("q"),), (AttachmentEntry("TOPIC", "q", AttachmentOptions("x", "selector")),)),
            "needs a pattern, found selector",
            ExitCode.USAGE,
        ),
        (
            Wiring((MuxerEntry("a", MuxerKind.SIMPLE),), (), (AttachmentEntry("a", "muxer:a"),)),
            "messages would loop: a -> a",
            ExitCode.FAILED,
        ),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_done(wanted: Wiring, words: str, code: ExitCode) -> None:
    """With its place in the file, why, and the exit code that fits."""
    for prunes in (False, True):
        with pytest.raises(ToolError, match=words) as refused:
            Broker().plan(wanted, prunes=prunes)
        assert refused.value.exit_code == code


def test_what_a_broker_has_is_not_asked_about() -> None:
    """An older one let attachments be by fields that no message has: they are named, found alike, and pruned."""
    attachment = AttachmentEntry("p", "q", AttachmentOptions((Condition("properties.subjekt"),), "conditions"))
    had = Wiring((MuxerEntry("p", MuxerKind.PROPERTY),), (QueueEntry("q"),), (attachment,))
    older = DryRun(TEMPLATES)
    older.load(had)
    rows = rows_of(older.state)
    assert attachment in wiring_of(rows).attachments
    assert plan_for(rows, had, TEMPLATES, path="w.toml", prunes=False).changes == ()
    plan = plan_for(rows, had._replace(attachments=()), TEMPLATES, path="w.toml", prunes=True)
    assert [(change.sign, change.entry) for change in plan.changes] == [("-", attachment)]


def test_templates_come_as_the_broker_tells_them() -> None:
    """Names, patterns, properties and attachments."""
    attach = [{"muxer": "m"}, {"muxer": "n", "conditions": [{"name": "x"}, {"name": "y", "value": None}]}]
    row = {"name": "t", "pattern": "t.#", "messages_max": 4, "attach": attach}
    template = templates_of([row]).for_queue("t.x")
    assert (template.name, template.settings.messages_max) == ("t", 4)
    assert [(one.muxer, one.argument_name) for one in template.attach] == [("m", ""), ("n", "conditions")]
