"""Translate Spark's exceptions into one ToolError: with our own message, or with the first words of Spark's.

Rule: an error of our code in a task, or in the plan of a read, arrives as the text of a traceback. The last line that
names one of our errors becomes the message, with the usual exit code of that error.
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
    """Raise a ToolError for each exception of Spark in the block."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - only where Spark runs
    from pyspark.errors import AnalysisException, PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = _text_of(error)
        ours = _OURS.findall(text)
        if ours:
            raise _own_error(*ours[-1]) from error
        is_query = isinstance(error, AnalysisException) or type(error).__name__ == "ParseException"
        raise ToolError(
            "Spark refuses the query" if is_query else "Spark failed",
            found=_first_words(text),
            code=ExitCode.USAGE if is_query else ExitCode.FAILED,
        ) from error


def _text_of(error: Exception) -> str:
    """Return the whole text of an exception, that of the Java process included."""
    description: Any = getattr(error, "_desc", None)
    if description:
        return str(description)
    java: Any = getattr(error, "java_exception", None)
    return str(java.toString()) if java is not None else str(error)


def _own_error(kind: str, message: str) -> ToolError:
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
