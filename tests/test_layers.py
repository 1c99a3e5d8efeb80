"""The rules of the house that a tool can check."""

from importlib.metadata import version

import engine
import log
import protocol
import snapshot
import tools


def test_every_package_says_what_it_is() -> None:
    """A package opens with one sentence about itself."""
    assert all(package.__doc__ for package in (engine, log, protocol, snapshot, tools))


def test_the_distribution_has_a_version() -> None:
    """The distribution is called ambermq."""
    assert version("ambermq")
