"""`python tests/mutants/operators.py run ...`: mutmut with the faults of this project instead of its own.

`python tests/mutants/operators.py names` prints the names of all mutants instead.

Rule 1. A fault is one that a person makes: a limit off by one, a condition turned round, a statement left out, a branch
        that is never taken. Texts of messages stay as they are.
Rule 2. A fault that mypy finds is none: `None` for an argument is not tried.
Rule 3. mutmut mutates no function with a decorator, thus no property.

It is a script, not a module of `tests`: mutmut runs the tests in this process, and they are those of its own copy.
"""

import sys
from collections.abc import Iterator
from typing import Final

import libcst as cst
from libcst import matchers as m
from mutmut.__main__ import cli
from mutmut.core import MutmutCallStack
from mutmut.mutation import mutators
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.file_utils import walk_mutatable_files
from mutmut.utils.format_utils import get_mutant_name

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


def print_names() -> None:
    """Print the names of all mutants, one a line."""
    for path in walk_mutatable_files():
        for name in mutate_file_contents(str(path), path.read_text(encoding="utf-8")).mutant_names:
            print(get_mutant_name(path, name))


if __name__ == "__main__":
    print_names() if sys.argv[1:] == ["names"] else cli()
