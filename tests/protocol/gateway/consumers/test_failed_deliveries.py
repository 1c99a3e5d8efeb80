"""The deliveries that a peer modified as failed, and got again before its detach."""

from ambermq.protocol.gateway.consumers.failed_deliveries import _WORDS_MAX, FailedDeliveries


def test_only_a_failed_delivery_that_came_again_counts() -> None:
    """It does until it has an outcome."""
    failed = FailedDeliveries()
    failed.note_sent([1, 2])
    failed.add([1, 2])
    assert failed.again == set()
    failed.note_sent([2, 3])
    assert failed.again == {2}
    failed.note_outcome([2, 3])
    assert failed.again == set()


def test_the_number_of_remembered_failures_is_bounded() -> None:
    """Beyond the bound a delivery that comes again is taken for a new one."""
    failed = FailedDeliveries()
    failed.add(range(_WORDS_MAX))
    failed.add([_WORDS_MAX])
    failed.note_sent([0, _WORDS_MAX])
    assert failed.again == {0}
