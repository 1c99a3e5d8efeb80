"""The delay and the lock after failed logins."""

from ambermq.protocol.auth.peer import LOCAL_PEER, Peer
from ambermq.protocol.auth.sasl.login_throttle import ADDRESS_FACTOR, LoginThrottle
from ambermq.protocol.server_limits import ServerLimits

_LIMITS = ServerLimits(login_delay_ms=100, login_failures_max=3, login_lock_s=60, login_rows_max=20)
_NEAR, _FAR = Peer("203.0.113.1", is_local=False), Peer("203.0.113.2", is_local=False)


def test_a_stranger_does_not_lock_a_user_out() -> None:
    """A lock is one of an address and a user; the user comes in from elsewhere, and others from there."""
    throttle = LoginThrottle(_LIMITS)
    delays = [throttle.fail(_NEAR, "alice", 0) for _ in range(3)]
    assert delays == [100, 200, 300]
    assert throttle.is_locked(_NEAR, "alice", 0)
    assert not throttle.is_locked(_FAR, "alice", 0)
    assert not throttle.is_locked(_NEAR, "bob", 0)


def test_a_lock_ends_though_the_client_goes_on() -> None:
    """Logins during a lock do not prolong it."""
    throttle = LoginThrottle(_LIMITS)
    for _ in range(3):
        throttle.fail(_NEAR, "alice", 0)
    assert throttle.fail(_NEAR, "alice", 59_999) == 800
    assert not throttle.is_locked(_NEAR, "alice", 60_000)
    assert throttle.fail(_NEAR, "alice", 60_000) == 100


def test_an_address_that_guesses_many_names_is_locked() -> None:
    """A success with one name does not end that."""
    throttle = LoginThrottle(_LIMITS)
    for number in range(3 * ADDRESS_FACTOR):
        throttle.fail(_NEAR, f"user{number}", 0)
        throttle.succeed(_NEAR, "own")
    assert throttle.is_locked(_NEAR, "alice", 0)


def test_local_peers_are_delayed_and_not_locked() -> None:
    """The delay stops to grow."""
    throttle = LoginThrottle(_LIMITS)
    delays = [throttle.fail(LOCAL_PEER, "alice", 0) for _ in range(100)]
    assert delays[-1] == max(delays) == 800
    assert not throttle.is_locked(LOCAL_PEER, "alice", 0)
    throttle.succeed(LOCAL_PEER, "alice")
    assert throttle.fail(LOCAL_PEER, "alice", 0) == 100


def test_the_tables_are_bounded() -> None:
    """The oldest row goes."""
    throttle = LoginThrottle(_LIMITS)
    for number in range(1000):
        throttle.fail(Peer(f"203.0.113.{number}", is_local=False), "alice", 0)
    assert len(throttle._users) == len(throttle._addresses) == 20
