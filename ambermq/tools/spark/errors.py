"""What Spark's exceptions mean to a person: one message of ours, or the first words of Spark's own.

Rule: what our own code raised in a task or while a read was planned arrives as the text of a traceback; its last line
that names one of our errors is what is told, with the exit code that it has anywhere else.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["translating_spark"]

_OURS: Final = re.compile(r"^ambermq(?:\.\w+)+\.errors\.(\w+): (.+)$", re.MULTILINE)
_FOREIGN: Final = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
_CODES: Final = {"DamageError": ExitCode.DAMAGED}
_NO_LOG: Final = ("no log here", "no virtual host", "the segment is gone")
_WORDS_MAX: Final = 500


@contextmanager
def translating_spark() -> Iterator[None]:
    """Raise a ToolError for what Spark raises in the block."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - only where Spark runs
    from pyspark.errors import AnalysisException, PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = _text_of(error)
        ours = _OURS.findall(text)
        if ours:
            raise _told(*ours[-1]) from error
        is_query = isinstance(error, AnalysisException) or type(error).__name__ == "ParseException"
        raise ToolError(
            "Spark refuses the query" if is_query else "Spark failed",
            found=_first_words(text),
            code=ExitCode.USAGE if is_query else ExitCode.FAILED,
        ) from error


def _text_of(error: Exception) -> str:
    """Return all that an exception says, that of the Java process included."""
    said: Any = getattr(error, "_desc", None)
    if said:
        return str(said)
    java: Any = getattr(error, "java_exception", None)
    return str(java.toString()) if java is not None else str(error)


def _told(kind: str, message: str) -> ToolError:
    code = _CODES.get(kind, ExitCode.FAILED)
    if any(words in message for words in _NO_LOG):
        code = ExitCode.NOT_FOUND
    advice = "run `ambermq log verify` to see the extent" if code is ExitCode.DAMAGED else ""
    return ToolError(message, advice=advice, code=code)


def _first_words(text: str) -> str:
    """Return Spark's own message without the plan and the traceback below it."""
    foreign = _FOREIGN.findall(text) if "Traceback" in text else []
    words = ": ".join(foreign[-1]) if foreign else text.partition(" SQLSTATE")[0].partition("\n\n")[0]
    return " ".join(words.split())[:_WORDS_MAX]
