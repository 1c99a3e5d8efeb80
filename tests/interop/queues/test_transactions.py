"""Transactions with proton: what is sent and accepted in one, over TCP, and what a SIGKILL leaves of it."""

import pytest
from proton import Message

from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_transactions import Session, posting, taking


def bodies_in(connect: Connect, queue: str, count: int) -> list[tuple[str, int]]:
    """The messages of a queue, with their delivery-counts."""
    got = connect().receiver(queue, credit=count + 1).wait(count)
    return [(each.message.body, each.delivery_count) for each in got]


def test_a_commit_shows_its_messages_and_a_rollback_none(broker: ChildBroker, connect: Connect, queue: str) -> None:
    """In the order in which they were sent."""
    steps = [posting("a", "b", commits=True), posting("x", commits=False), posting("c", commits=True)]
    assert Session(broker.url, queue, steps).run() == ["committed", "aborted", "committed"]
    assert bodies_in(connect, queue, 3) == [("a", 0), ("b", 0), ("c", 0)]


@pytest.mark.parametrize("commits", [True, False])
def test_what_is_accepted_ends_with_the_commit(
    broker: ChildBroker, connect: Connect, queue: str, commits: bool
) -> None:
    """A rollback leaves every message where it was."""
    connect().sender(queue).send(Message("a"), Message("b"))
    assert Session(broker.url, queue, [taking(commits=commits)], takes=2).run() == [
        "committed" if commits else "aborted"
    ]
    connect().sender(queue).send(Message("end"))
    left = bodies_in(connect, queue, 1 if commits else 3)
    assert [body for body, _ in left] == (["end"] if commits else ["a", "b", "end"])


def test_a_kill_leaves_nothing_of_an_open_transaction(start_broker: StartBroker) -> None:
    """And all of one that was committed."""
    child = start_broker()

    def killed(session: Session) -> None:
        session.send("x", "y")
        child.kill()

    Session(child.url, "q", [posting("a", "b", commits=True), killed]).run()
    child.start()
    assert Session(child.url, "q", [taking(commits=True)], takes=2).run() == ["committed"]
    child.kill()
    child.start()
    session = Session(child.url, "q", [posting("last", commits=True), taking(commits=True)], takes=0)
    assert session.run() == ["committed", "committed"]
    final = Session(child.url, "q", [taking(commits=True)], takes=1)
    assert final.run() == ["committed"]
    assert [body for body, _, _ in final.got] == ["last"]
