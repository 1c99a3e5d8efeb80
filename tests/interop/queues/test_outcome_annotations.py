"""The limit of descriptions in memory, with proton: each message is rejected with a text of its own."""

from proton import Condition, Delivery

from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import Manager

LIMIT = 8000
COUNT = 40


def test_descriptions_are_bounded_over_a_kill(start_broker: StartBroker, connect: Connect) -> None:
    """Dead letters beyond the limit have their condition and all other annotations; none is lost."""
    child = start_broker(config=f"[engine]\noutcome_annotations_bytes_max = {LIMIT}\n")
    manager, peer = Manager(connect(child.url)), connect(child.url)
    manager.ask("CREATE", "q", {"dead_letter": "dead"})
    peer.sender("q").send(*map(str, range(COUNT)))
    receiver = peer.receiver("q", credit=COUNT)
    for got in receiver.wait(COUNT):
        got.delivery.local.condition = Condition("app:bad", f"no customer {got.message.body}".ljust(300))
        got.settle(Delivery.REJECTED)
    peer.wait(lambda: manager.queue("dead")["available"] == COUNT, "all are dead letters")
    figures = manager.ask("READ", "self", type="org.ambermq.broker").body
    assert isinstance(figures, dict)
    assert figures["outcome_annotations_bytes_max"] == LIMIT
    held = figures["outcome_annotations_bytes"]
    assert LIMIT // 2 < held <= LIMIT
    child.kill()
    child.start()
    figures = Manager(connect(child.url)).ask("READ", "self", type="org.ambermq.broker").body
    assert isinstance(figures, dict)
    assert figures["outcome_annotations_bytes"] == held
    dead = [one.message.annotations for one in connect(child.url).receiver("dead", credit=COUNT).wait(COUNT)]
    texts = [one["x-opt-dead-letter-description"] for one in dead]
    whole = len([text for text in texts if text.startswith("app:bad: no customer ")])
    assert texts[whole:] == ["app:bad"] * (COUNT - whole)
    assert 0 < whole < COUNT
    assert {one["x-opt-deadletter-source"] for one in dead} == {"q"}
    assert {str(one["x-opt-dead-letter-reason"]) for one in dead} == {"rejected"}
