"""The results of mutmut are read without it, and each explanation belongs to a line that is still there."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

from tests.mutants.__main__ import report
from tests.mutants.results import ROOT, Verdict, change_of, explanations, forget_survivors, verdicts

_MUTATED = """\
class Schedule:
    def xǁScheduleǁdue__mutmut_orig(self) -> bool:
        if self.count:
            return self.size > 1
        return False
    def xǁScheduleǁdue__mutmut_1(self) -> bool:
        if not (self.count):
            return self.size > 1
        return False
    def xǁScheduleǁdue__mutmut_2(self) -> bool:
        if self.count:
            return self.size >= 1
        return False
"""
_NAME = "ambermq.engine.schedule.xǁScheduleǁdue__mutmut_"


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{part.name}", part) for part in node.body if isinstance(part, ast.FunctionDef))


def _lines(function: str) -> str:
    """Return the lines of a function without their indents, one behind the other; nothing if it is gone."""
    parts = function.split(".")
    for count in range(len(parts) - 1, 0, -1):
        path = ROOT.joinpath(*parts[:count]).with_suffix(".py")
        if path.is_file():
            source = path.read_text(encoding="utf-8")
            node = dict(_functions(ast.parse(source))).get(".".join(parts[count:]))
            lines = source.splitlines()[node.lineno - 1 : node.end_lineno] if node else []
            return " ".join(line.strip() for line in lines)
    return ""


def test_a_verdict_has_its_function_and_change(tmp_path: Path) -> None:
    """The change is named by its lines, which stay when the number of the mutant changes."""
    spans = {
        "xǁScheduleǁdue__mutmut_orig": [2, 5],
        **{f"xǁScheduleǁdue__mutmut_{n}": [2 + 4 * n, 5 + 4 * n] for n in (1, 2)},
    }
    (tmp_path / "schedule.py").write_text(_MUTATED)
    (tmp_path / "schedule.py.spans").write_text(json.dumps({"version": 1, "spans": spans}))
    codes = {f"{_NAME}1": 1, f"{_NAME}2": 0}
    (tmp_path / "schedule.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))
    module = "ambermq.engine.schedule"
    assert list(verdicts(tmp_path)) == [
        Verdict(
            f"{_NAME}1", module, f"{module}.Schedule.due", "if self.count: => if not (self.count):", is_killed=True
        ),
        Verdict(
            f"{_NAME}2",
            module,
            f"{module}.Schedule.due",
            "return self.size > 1 => return self.size >= 1",
            is_killed=False,
        ),
    ]


def test_a_mutant_that_was_not_tried_is_not_counted(tmp_path: Path) -> None:
    """A run that was stopped has some of them."""
    meta = tmp_path / "schedule.py.meta"
    meta.write_text(json.dumps({"exit_code_by_key": {f"{_NAME}1": None}}))
    assert list(verdicts(tmp_path)) == []


def test_survivors_are_tried_again(tmp_path: Path) -> None:
    """After new tests; what was killed stays killed."""
    meta = tmp_path / "schedule.py.meta"
    meta.write_text(json.dumps({"exit_code_by_key": {"a": 0, "b": 1, "c": 33, "d": None, "e": -24}, "other": 7}))
    forget_survivors(tmp_path)
    codes = {"a": None, "b": 1, "c": None, "d": None, "e": -24}
    assert json.loads(meta.read_text()) == {"exit_code_by_key": codes, "other": 7}


def test_survivors_are_explained_or_listed() -> None:
    """An explanation holds for one function and one change."""
    found = [
        Verdict("m.a_1", "m", "m.a", "x < 1 => x <= 1", is_killed=False),
        Verdict("m.b_1", "m", "m.b", "x < 1 => x <= 1", is_killed=False),
        Verdict("m.b_2", "m", "m.b", "x < 1 => x < 2", is_killed=True),
    ]
    figures = report(found, {"m.a": {"x < 1 => x <= 1": "x is never 1"}})
    assert (figures["mutants"], figures["killed"], figures["survivors_explained"]) == (3, 1, 1)
    assert figures["survivors_unexplained"] == [{"function": "m.b", "change": "x < 1 => x <= 1", "name": "m.b_1"}]
    assert figures["modules"] == {"m": {"mutants": 3, "killed": 1}}


def test_a_changed_line_is_named_without_its_indent() -> None:
    """The lines around it do not matter."""
    assert change_of(["    a()", "    b()"], ["    a()", "    pass"]) == "b() => pass"


def test_each_explanation_belongs_to_a_line() -> None:
    """An explanation of a line that is gone is removed."""
    gone = [
        f"{function}: {change}"
        for function, changes in explanations().items()
        for change, reason in changes.items()
        if change.partition(" => ")[0] not in _lines(function) or not reason
    ]
    assert gone == []
