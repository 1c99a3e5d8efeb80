"""A plugin of pytest, `-p tests.deadline`: no test starts after a moment, and the run fails if one was left.

A test that was left is skipped, so that the fixtures of the others end in order.
"""

import os
import time
from typing import Final

import pytest

__all__ = ["END_VARIABLE"]

END_VARIABLE: Final = "TESTS_END"
"""The moment, in seconds since 1970."""
_REASON: Final = "the time is over"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that would start too late."""
    if time.time() > float(os.environ.get(END_VARIABLE, "inf")):
        pytest.skip(_REASON)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that has left tests, and say how many."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a worker of xdist, whose reports are counted by the process that started it
        return
    count = sum(_REASON in str(report.longrepr) for report in reporter.stats.get("skipped", []))
    if count:
        print(f"\n{count} tests did not start in time: name fewer packages, or run make test")
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
