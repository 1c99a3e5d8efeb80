"""The generator of AMQP's tables: what is checked in is what the XML says."""

from pathlib import Path

import pytest

from ambermq.protocol.amqp10 import spec
from ambermq.protocol.amqp10.performatives import classes as performatives
from ambermq.tools.spec.generate import PROTOCOL_DIRECTORY, SPECS_DIRECTORY, difference, generated_files, main

needs_xml = pytest.mark.skipif(
    not SPECS_DIRECTORY.is_dir(), reason="the OASIS XML is not here: install Debian's package amqp-specs"
)


@needs_xml
def test_what_is_checked_in_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    """`make spec` finds nothing to change, and says nothing."""
    assert main(["--check"]) == 0
    assert capsys.readouterr().out == ""


@needs_xml
def test_output_is_deterministic() -> None:
    """Equal XML gives equal text."""
    assert generated_files() == generated_files()


@needs_xml
def test_a_difference_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """XML that says something else is a diff and exit code 1."""
    for path in SPECS_DIRECTORY.glob("*.bare.xml"):
        text = path.read_text(encoding="utf-8").replace('name="PORT" value="5672"', 'name="PORT" value="5673"')
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    assert main(["--specs", str(tmp_path)]) == 1
    diff = capsys.readouterr().out
    assert "-PORT: Final = 5672\n+PORT: Final = 5673\n" in diff
    assert "protocol/amqp10/spec.py" in diff


def test_missing_xml_is_one_clear_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the XML the command says what to install, and exits with 2."""
    assert main(["--check", "--specs", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "amqp-specs" in captured.err
    assert captured.err.count("\n") == 1


def test_difference_of_equal_files_is_empty() -> None:
    """What is checked in does not differ from itself."""
    files = {
        name: (PROTOCOL_DIRECTORY / name).read_text(encoding="utf-8")
        for name in ("amqp10/spec.py", "amqp10/performatives/classes.py")
    }
    assert difference(files) == ""
    assert "+more\n" in difference({"amqp10/spec.py": files["amqp10/spec.py"] + "more\n"})


def test_the_tables_hold_what_the_specification_counts() -> None:
    """24 primitive types in 39 encodings, 33 composite types, and the port that everyone knows."""
    assert len(spec.PRIMITIVES) == 24
    assert sum(len(encodings) for encodings in spec.PRIMITIVES.values()) == 39
    assert len(performatives.COMPOSITES) == 33
    assert (spec.PORT, spec.MIN_MAX_FRAME_SIZE) == (5672, 512)
    assert spec.SessionCondition.UNATTACHED_HANDLE == "amqp:session:unattached-handle"
