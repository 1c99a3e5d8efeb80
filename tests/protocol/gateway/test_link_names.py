"""The names of links: the last attach of a name has it, and what ends another link of that name does not change it."""

from types import SimpleNamespace
from typing import Any

import pytest

from ambermq.protocol.gateway.link_names import LinkNames
from ambermq.protocol.gateway.links.attach_terms import Refusal


class _Link(SimpleNamespace):
    """A link; as real ones it is equal to itself only."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def link(name: str = "l", *, is_sender: bool = False) -> Any:
    """Return a link by its name and direction."""
    return _Link(name=name, is_sender=is_sender)


def peer(container: str = "me") -> Any:
    """Return a connection of a container."""
    return SimpleNamespace(container=container)


def test_a_link_is_found_by_container_name_and_direction() -> None:
    """And by nothing less."""
    names, mine, holder = LinkNames(name_bytes_max=9), link(), peer()
    names.add(holder, mine)
    assert names.find("me", link()) == (holder, mine)
    others = [("you", link()), ("me", link("k")), ("me", link(is_sender=True)), ("", link())]
    assert [names.find(*other) for other in others] == [None] * 4
    assert len(names) == 1


def test_a_container_without_an_id_shares_no_names() -> None:
    """Its links are not added, and their removal is no error."""
    names, mine = LinkNames(name_bytes_max=9), link()
    names.add(peer(""), mine)
    assert (len(names), names.find("", link())) == (0, None)
    names.remove(mine)


def test_the_end_of_an_earlier_link_takes_no_name() -> None:
    """Nothing is left of either link in the end."""
    names, early, late, holder = LinkNames(name_bytes_max=9), link(), link(), peer()
    names.add(peer(), early)
    names.add(holder, late)
    names.remove(early)
    assert names.find("me", link()) == (holder, late)
    for _ in range(2):
        names.remove(late)
    assert (len(names), names._links, names._names) == (0, {}, {})


def test_a_name_is_removed_though_its_container_has_gone() -> None:
    """A connection loses its container id before its links are forgotten."""
    names, mine, holder = LinkNames(name_bytes_max=9), link(), peer()
    names.add(holder, mine)
    holder.container = ""
    names.remove(mine)
    assert len(names) == 0


def test_the_bytes_of_a_name_are_bounded() -> None:
    """In UTF-8."""
    names = LinkNames(name_bytes_max=4)
    names.check(link("\u00fc\u00fc"))
    with pytest.raises(Refusal, match="a link name of 5 bytes, at most 4"):
        names.check(link("\u00fc\u00fcx"))
