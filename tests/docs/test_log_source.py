"""docs/log-source.md lists every event with its facts, and its example runs."""

import contextlib
import io
import re
from pathlib import Path

from ambermq.engine.records.event_fields import EVENT_TYPES, facts_of, type_of
from ambermq.tools.broker.child_broker import ChildBroker
from tests.docs.event_tables import with_facts
from tests.docs.pages import blocks, rows, text_of
from tests.engine.events.samples import SAMPLES

_PAGE = "docs/log-source.md"


def test_every_fact_is_listed() -> None:
    """The table names each type once, in the order of `--type`, and its facts as they are."""
    told: dict[str, set[str]] = {name: set() for name in EVENT_TYPES}
    for sample in SAMPLES:
        told[type_of(sample.event)] |= facts_of(sample.event, lambda _: "q").keys()
    listed = [(kind.strip("`| "), set(re.findall(r"`(\w+)`", cell))) for kind, cell in rows(_PAGE, "## Facts")]
    assert listed == [*told.items()]


def test_the_table_is_derived() -> None:
    """Its words are those that stand beside each event."""
    assert text_of(_PAGE) == with_facts(text_of(_PAGE)), "run python -m tests.docs.event_tables"


def test_the_example_runs(tmp_path: Path) -> None:
    """The first events of a young broker, by a client that knows nothing but AMQP."""
    (example,) = blocks(_PAGE, "python")
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(example, _PAGE, "exec"), {"URL": broker.url})
    finally:
        broker.kill()
    assert said.getvalue().splitlines() == [
        "0 started {'epoch': 1}",
        "1 muxer-declared {'muxer': 'QUEUE', 'class': 'DESTINATION'}",
    ]
