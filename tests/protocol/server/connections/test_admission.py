"""The admission of connections: a client that authenticates gets in, however many strangers connect."""

from typing import Final

import pytest

from ambermq.protocol.server.connections.admission import Admission
from ambermq.protocol.server.listeners.peer_address import LOCAL, address_of
from ambermq.protocol.server_limits import ServerLimits

_REMOTE: Final = "203.0.113.7"


class _Peer:
    """A connection that only notes why it was dropped."""

    def __init__(self, admission: "Admission[_Peer]", address: str = _REMOTE) -> None:
        self.admission = admission
        self.address = address
        self.dropped = ""

    def drop(self, reason: str) -> None:
        self.dropped = reason
        self.admission.left(self)


def admission_of(connections_max: int = 40, **limits: int) -> "Admission[_Peer]":
    """Make an admission without a limit per address, unless it is given."""
    unlimited = {"address_strangers_max": 0, "address_accepts_max": 0}
    return Admission(ServerLimits(connections_max=connections_max, **{**unlimited, **limits}))


def admitted(admission: "Admission[_Peer]", address: str = _REMOTE, *, now_ms: int = 0) -> _Peer:
    """Admit a connection."""
    peer = _Peer(admission, address)
    assert admission.admit(peer, now_ms) == ""
    return peer


def test_the_oldest_stranger_goes_first() -> None:
    """At the limit; connections that have authenticated stay."""
    admission = admission_of(local_connections_reserved=0)
    peers = [admitted(admission, f"203.0.113.{number}") for number in range(40)]
    admission.authenticated(peers[0])
    fresh = admitted(admission)
    assert [peer.dropped for peer in (peers[0], peers[2])] == ["", ""]
    assert peers[1].dropped == "40 connections, at most 40 (connections_max)"
    assert (admission.count, admission.dropped, admission.strangers, fresh.dropped) == (40, 1, 39, "")


def test_a_client_is_refused_only_by_clients_that_have_authenticated() -> None:
    """Then a new one is refused, and gets in after one has left."""
    admission = admission_of(local_connections_reserved=0)
    peers = [admitted(admission) for _ in range(40)]
    for peer in peers:
        admission.authenticated(peer)
    late = _Peer(admission)
    assert "at most 40 (connections_max)" in admission.admit(late, 0)
    assert (admission.count, admission.refused) == (40, 1)
    admission.left(peers[0])
    assert admission.admit(late, 0) == ""


def test_an_honest_client_gets_in_among_strangers_that_connect_again_and_again() -> None:
    """It has the time in which as many strangers connect as there are places."""
    admission, tries, entered = admission_of(200, local_connections_reserved=16), 202, 0
    for number in range(200):
        admitted(admission, f"198.51.{number}.1")
    for number in range(tries):
        honest = admitted(admission)
        for stranger in range(100):
            admitted(admission, f"198.51.{number % 250}.{stranger}")
        entered += not honest.dropped
        admission.authenticated(honest)
        admission.left(honest)
    assert entered == tries


def test_an_address_has_few_connections_that_have_not_authenticated() -> None:
    """The oldest of that address is dropped, no other one; authenticated ones do not count."""
    admission = admission_of(100, address_strangers_max=3)
    other = admitted(admission, "198.51.100.1")
    for _ in range(10):
        admission.authenticated(admitted(admission))
    strangers = [admitted(admission) for _ in range(5)]
    assert [bool(peer.dropped) for peer in strangers] == [True, True, False, False, False]
    assert not other.dropped


def test_an_address_has_few_new_connections_a_second() -> None:
    """Further ones are refused until the second is over; other addresses are not."""
    admission = admission_of(1000, address_accepts_max=5)
    refusals = [admission.admit(_Peer(admission), 100) for _ in range(7)]
    assert refusals[:5] == [""] * 5
    assert all("address_accepts_max" in refusal for refusal in refusals[5:])
    admitted(admission, "198.51.100.1", now_ms=100)
    admitted(admission, now_ms=1000)


def test_the_last_places_are_for_peers_of_this_machine() -> None:
    """16 by default; they have no limit per address either."""
    admission = admission_of(100, address_strangers_max=3, address_accepts_max=3)
    for number in range(84):
        admission.authenticated(admitted(admission, f"203.0.113.{number}"))
    assert "at most 84" in admission.admit(_Peer(admission), 0)
    for _ in range(16):
        admission.authenticated(admitted(admission, LOCAL))
    assert "at most 100" in admission.admit(_Peer(admission, LOCAL), 0)


def test_a_small_broker_reserves_at_most_half() -> None:
    """Of one connection nothing is reserved."""
    admission = admission_of(1)
    admission.authenticated(admitted(admission))
    assert admission.admit(_Peer(admission), 0)


def test_a_remote_stranger_goes_before_a_local_one() -> None:
    """And a remote connection drops no local one."""
    admission = admission_of(4, local_connections_reserved=0)
    local = [admitted(admission, LOCAL) for _ in range(3)]
    remote = admitted(admission)
    admitted(admission, LOCAL)
    assert remote.dropped
    assert admission.admit(_Peer(admission), 0)
    admitted(admission, LOCAL)
    assert [bool(peer.dropped) for peer in local] == [True, False, False]


def test_nothing_is_kept_of_connections_that_have_left() -> None:
    """Neither addresses nor connections."""
    admission = admission_of(100, address_strangers_max=3, address_accepts_max=100)
    peers = [admitted(admission, f"203.0.113.{number}", now_ms=number * 1000) for number in range(50)]
    for peer in peers:
        admission.left(peer)
    assert (admission.count, admission.strangers) == (0, 0)
    assert (admission._strangers, len(admission._remote), len(admission._accepts)) == ({}, 0, 1)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        (("127.0.0.1", 5), LOCAL),
        (("127.8.0.1", 5), LOCAL),
        (("::1", 5, 0, 0), LOCAL),
        (("::ffff:127.0.0.1", 5, 0, 0), LOCAL),
        ("", LOCAL),
        ("/run/ambermq.sock", LOCAL),
        (None, LOCAL),
        (("203.0.113.7", 5), "203.0.113.7"),
        (("::ffff:203.0.113.7", 5, 0, 0), "203.0.113.7"),
        (("2001:db8::1:2", 5, 0, 0), "2001:db8::/64"),
        (("2001:db8::9:2", 5, 0, 0), "2001:db8::/64"),
        (("fe80::1%eth0", 5, 0, 2), "fe80::/64"),
    ],
)
def test_the_address_of_a_peer(name: object, address: str) -> None:
    """Peers of this machine have none; a network of IPv6 is one."""
    assert address_of(name) == address


def test_few_descriptors_refuse_other_machines() -> None:
    """The log needs the rest; peers of this machine get in, so that an administrator sees the reason."""
    admission = admission_of()
    admission.lacks_descriptors = True
    refused = _Peer(admission)
    assert admission.admit(refused, 0) == "few file descriptors are free (descriptors_free_low)"
    admitted(admission, LOCAL)
    admission.lacks_descriptors = False
    admitted(admission)
    assert (admission.count, admission.refused) == (2, 1)
