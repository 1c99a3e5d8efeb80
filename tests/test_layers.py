"""The rules of the house that a tool can check."""

from importlib.metadata import version

import ambermq
from ambermq import engine, log, protocol, snapshot, tools


def test_every_package_says_what_it_is() -> None:
    """A package opens with one sentence about itself."""
    assert all(package.__doc__ for package in (engine, log, protocol, snapshot, tools))


def test_the_distribution_has_a_version() -> None:
    """The distribution is called ambermq, and its version is that of the package."""
    assert version("ambermq") == ambermq.__version__
