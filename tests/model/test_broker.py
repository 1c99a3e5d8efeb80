"""The model's broker leaves the engine's functions as they are."""

import errno

import pytest

from ambermq.engine.commands import AttachProducer
from ambermq.engine.dispatch import dispatch
from ambermq.engine.fold import apply
from ambermq.engine.loop import logged_state
from ambermq.log.errors import LogFailed
from tests.model.broker import Broker


def _replaced() -> tuple[object, ...]:
    """Return what the model replaces in the engine."""
    return vars(logged_state)["APPLY"], vars(dispatch)["acquired"], vars(dispatch)["settled"]


def test_a_call_that_fails_leaves_no_function_replaced() -> None:
    """Other tests of the process fold with the engine's own functions, though this broker's test failed."""
    before = _replaced()
    broker = Broker(0)
    broker.loop.submit(AttachProducer("key", "one", "container", "link"))
    broker.storage.fail(errno.EIO, operation="write")
    with pytest.raises(LogFailed):
        broker.step(0)
    assert broker.history.states
    assert _replaced() == before
    assert before[0] is apply.APPLY
    broker.end()
