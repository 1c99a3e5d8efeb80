"""`python tests/mutants/operators.py run ...`: mutmut with the faults of this project instead of its own.

`python tests/mutants/operators.py names` prints the names of all mutants instead.

Rule 1. A fault is one that a person makes: a limit off by one, a condition turned round, a statement left out, a branch
        that is never taken. Texts of messages stay as they are.
Rule 2. A fault that mypy finds is none: `None` for an argument is not tried.
Rule 3. mutmut mutates no function with a decorator, thus no property.

It is a script, not a module of `tests`: mutmut runs the tests in this process, and they are those of its own copy.
"""

import os
import signal
import sys
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final

import libcst as cst
import pytest
from libcst import matchers as m
from mutmut.__main__ import cli
from mutmut.core import MutmutCallStack
from mutmut.mutation import mutators
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd, walk_mutatable_files
from mutmut.utils.format_utils import get_mutant_name
from mutmut.workers import isolation

_TEST_SECONDS, _TEST_FACTOR = 10.0, 10.0
"""A test may take so many seconds, and so many times as long as without a mutant."""
_OTHERS_SECONDS: Final = 10.0
"""The tests of other packages for one mutant: those that take no longer together."""
_PASS: Final = cst.SimpleStatementLine([cst.Pass()])
_EXTREMES: Final = {"min": "max", "max": "min"}
_IS_EFFECT: Final = (
    m.Expr(m.Call()) | m.AugAssign() | m.Assign(targets=[m.AssignTarget(m.Attribute() | m.Subscript())]) | m.Del()
)
_IS_MUTATED_WITHIN: Final = m.Comparison() | m.BooleanOperation() | m.UnaryOperation(m.Not())


def left_out(line: cst.SimpleStatementLine) -> Iterator[cst.SimpleStatementLine]:
    """Yield `pass` for a statement that has an effect: a call, an assignment to an attribute, a deletion."""
    if m.matches(line, m.SimpleStatementLine(body=[_IS_EFFECT])):
        yield _PASS


def turned_round(branch: cst.If | cst.While) -> Iterator[cst.If | cst.While]:
    """Yield a condition with `not`, if it is one that no other operator changes."""
    if not m.matches(branch.test, _IS_MUTATED_WITHIN):
        test = branch.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        yield branch.with_changes(test=cst.UnaryOperation(cst.Not(), test))


def without_result(statement: cst.Return) -> Iterator[cst.Return]:
    """Yield `return None` for a result that is computed."""
    if statement.value is not None and not m.matches(statement.value, m.Name() | m.Integer()):
        yield statement.with_changes(value=cst.Name("None"))


def other_extreme(call: cst.Call) -> Iterator[cst.Call]:
    """Yield max for min, and min for max."""
    if isinstance(call.func, cst.Name) and call.func.value in _EXTREMES:
        yield call.with_changes(func=cst.Name(_EXTREMES[call.func.value]))


mutators.mutation_operators[:] = [  # type: ignore[index]
    (cst.BaseNumber, mutators.operator_number),
    (cst.Name, mutators.operator_name),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (cst.CSTNode, mutators.operator_keywords),
    (cst.CSTNode, mutators.operator_swap_op),
    (cst.Match, mutators.operator_match),
    (cst.IfExp, mutators.operator_if_exp),
    (cst.SimpleStatementLine, left_out),
    (cst.If, turned_round),
    (cst.While, turned_round),
    (cst.Return, without_result),
    (cst.Call, other_extreme),
]

# The call stack tells mutmut which mutants to repeat after a change of another function. It costs one context variable
# for each call, and CPython 3.11 crashes in it after millions of calls.
MutmutCallStack.get = classmethod(lambda _: (None, 0))  # type: ignore[assignment]
MutmutCallStack.set = classmethod(lambda *_: None)  # type: ignore[assignment]
MutmutCallStack.reset = classmethod(lambda *_: None)  # type: ignore[assignment]


class Deadline:
    """Ends the process as a failure if one test takes far longer than without a mutant: it may never end."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test against a timer."""
        signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
        signal.setitimer(signal.ITIMER_REAL, _TEST_SECONDS + _TEST_FACTOR * state().duration_by_test[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def nearest(mutant_name: str, tests: Iterable[str]) -> list[str]:
    """Return the tests of a mutant's own package, short ones first, and then the shortest of the others.

    The others are limited: many call nearly everything, and a survivor waits for all of its tests.
    """
    room = Path("tests", *mutant_name.split(".")[1:-2]).as_posix()
    seconds = state().duration_by_test
    ordered = sorted(tests, key=lambda test: (seconds[test], test))
    own = [test for test in ordered if test.startswith(f"{room}/")]
    others = [test for test in ordered if not test.startswith(f"{room}/")]
    sums = list(accumulate(seconds[test] for test in others))
    return own + others[: bisect_right(sums, _OTHERS_SECONDS)]


class NearestFirst(PytestRunner):
    """Runs the nearest tests of a mutant against a deadline. The first failure ends them."""

    def run_tests(self, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        """Run tests in order until one fails; return the exit code of pytest."""
        if mutant_name is None:
            return super().run_tests(mutant_name=mutant_name, tests=tests)
        with change_cwd("mutants"):
            arguments = self._pytest_args_regular_run(nearest(mutant_name, tests))
            return int(self.execute_pytest(arguments, plugins=[Deadline()]))


isolation.PytestRunner = NearestFirst  # type: ignore[misc]


def print_names() -> None:
    """Print the names of all mutants, one a line."""
    for path in walk_mutatable_files():
        for name in mutate_file_contents(str(path), path.read_text(encoding="utf-8")).mutant_names:
            print(get_mutant_name(path, name))


if __name__ == "__main__":
    print_names() if sys.argv[1:] == ["names"] else cli()
