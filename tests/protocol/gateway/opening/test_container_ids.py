"""A connection that desires to be the only one is refused while its container is connected."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.performatives.classes import Close, Open
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.gateway.opening.container_ids import SOLE_CONNECTION, ContainerIds
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.watching import Watching

NAMES = st.sampled_from(["", "a", "b"])


def opened(container: str, *, is_sole: bool) -> Open:
    """An open of a container."""
    return Open(container_id=container, desired_capabilities=(SOLE_CONNECTION,) if is_sole else ())


@given(st.lists(st.tuples(NAMES, st.booleans(), st.booleans())))
def test_a_container_is_counted_in_and_out(steps: list[tuple[str, bool, bool]]) -> None:
    """It is refused where it is there and desires to be alone, and never else."""
    containers, there = ContainerIds(id_bytes_max=1), list[str]()
    for name, comes, is_sole in steps:
        if comes:
            is_refused = containers.enter(opened(name, is_sole=is_sole), Identity()) is not None
            assert is_refused == bool(is_sole and name and name in there)
            there += [] if is_refused else [name]
        elif name in there:
            there.remove(name)
            containers.leave(name, Identity())


def test_the_refusal_says_what_is_invalid() -> None:
    """Open with amqp:connection-establishment-failed, then close: amqp:invalid-field, and in its info which one."""
    first = Watching(Rig(), container="me")
    second = Watching(first.rig, container="", gateway=first.gateway)
    second.peer.lost()
    server = Watching(first.rig, container="you", gateway=first.gateway)
    assert server.peer.container == "you"
    error = first.gateway.containers.enter(opened("me", is_sole=True), first.peer.identity)
    assert error is not None
    assert (str(error.condition), error.info) == ("amqp:invalid-field", {"invalid-field": "container-id"})
    assert Close(error=error).error is error
    first.peer.lost()
    first.peer.lost()
    assert first.gateway.containers.enter(opened("me", is_sole=True), first.peer.identity) is None


def test_an_id_is_bounded() -> None:
    """In bytes: the longest comes in, one more is refused by the name of the bound, and keeps nothing."""
    first = Watching(Rig(), limits=ServerLimits(container_id_bytes_max=4), container="\u00fc\u00fc")
    assert first.peer.container == "\u00fc\u00fc"
    second = Watching(first.rig, container="\u00fc\u00fca", gateway=first.gateway)
    (error,) = [said.error for said in second.opening if isinstance(said, Close) and said.error]
    assert (str(error.condition), error.info) == ("amqp:invalid-field", {"invalid-field": "container-id"})
    assert "5 bytes: at most 4 are allowed (container_id_bytes_max)" in str(error.description)
    assert second.peer.container == ""


def test_an_id_is_of_its_user() -> None:
    """A user that holds the id of another one blocks none of its connections."""
    containers, alice, mallory = ContainerIds(id_bytes_max=10), Identity("alice"), Identity("mallory")
    assert containers.enter(opened("app", is_sole=True), mallory) is None
    assert containers.enter(opened("app", is_sole=True), alice) is None
    assert containers.enter(opened("app", is_sole=True), alice) is not None
    containers.leave("app", alice)
    assert containers.enter(opened("app", is_sole=True), alice) is None
    assert containers.enter(opened("app", is_sole=True), mallory) is not None
