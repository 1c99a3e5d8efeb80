"""What is said of the interpreter."""

import platform

from bench.interpreter import describe_interpreter


def test_version_and_speed_are_told() -> None:
    """A reader can tell builds apart, also of one version."""
    text = describe_interpreter()
    assert platform.python_version() in text
    assert float(text.split(" ns a step")[0].rsplit(" ", 1)[1]) > 0
