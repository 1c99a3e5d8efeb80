"""How the laws are tried: the same examples each time by default, others each time in `make fuzz`. And one Spark.

A shell starts what runs in its background with SIGINT ignored, and that is inherited: commands that end by it would
never end. Here it is as at a terminal.

A command that reads a log lowers the priority of its process for good. Here many commands run in one process, so they
keep its priority: brokers that it starts later would inherit the lower one.

Bytecode is written even where the environment forbids it. Hundreds of tests start a process, and each would compile the
package again; each worker of pytest would rewrite the assertions of all tests again.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import Phase, settings

from ambermq.tools.spark.session import STARTS_SOON, open_session
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.signposts import modules_by_signpost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.setpriority = lambda *_: None

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("test", derandomize=True, deadline=None)
settings.register_profile("fuzz", derandomize=False, deadline=None, print_blob=True)
# `make mutants` asks only whether a test fails: the search for the smallest example would take minutes for each fault.
settings.register_profile("mutants", derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("TESTS_HYPOTHESIS", "test"))


_LONGEST: Final = (
    "tests/crash/",
    "tests/soak/",
    "tests/tools/broker/test_full_disk.py",
    "tests/docs/tours/",
    "tests/bench/",
    "tests/packaging/",
)
"""The longest tests, which mostly wait. They run first, beside the others: at the end one would run alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first; all others keep their order."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


@pytest.fixture(scope="session", autouse=True)
def no_module_has_two_names() -> Iterator[None]:
    """Fail the run where any test imported a module by a link at the top of the checkout, as a second module."""
    yield
    assert modules_by_signpost(sys.modules) == []


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session of all tests that need Spark: it takes long to start, and memory. Tasks are tried twice."""
    # Spark's workers do not import from the working directory, and tests send functions of this package to them.
    os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent)
    opened = open_session("local[2,2]", java_options=STARTS_SOON)
    try:
        session = opened.__enter__()
    except ToolError as error:
        if error.exit_code != ExitCode.NOT_INSTALLED:
            raise
        pytest.skip(error.message)
    yield session
    opened.__exit__(None, None, None)
