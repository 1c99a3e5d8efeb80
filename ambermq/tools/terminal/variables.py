"""Environment variables: a value, or the name of a file that contains it.

Rule 1. NAME_FILE names a file with the value of NAME, as container platforms pass secrets. Both at once are an error.
Rule 2. A trailing line break of the file is not part of the value.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["COMMAND_VARIABLES", "FILE_SUFFIX", "PREFIX", "read_variable", "read_variable_file"]

PREFIX: Final = "AMBERMQ_"
FILE_SUFFIX: Final = "_FILE"
COMMAND_VARIABLES: Final = (
    "AMBERMQ_CONFIG",
    "AMBERMQ_CONTEXT",
    "AMBERMQ_DATA",
    "AMBERMQ_PASSWORD_FILE",
    "AMBERMQ_READ_RATE",
    "AMBERMQ_TLS_CA",
    "AMBERMQ_TLS_CERT",
    "AMBERMQ_TLS_KEY",
    "AMBERMQ_TRACEBACK",
    "AMBERMQ_URL",
)
"""The variables that commands read, besides those of the keys of the configuration."""
_FILE_BYTES_MAX: Final = 65_536


def read_variable(name: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the value of a variable, or the content of the file that NAME_FILE names; empty if neither is set."""
    variables = os.environ if environment is None else environment
    path = variables.get(name + FILE_SUFFIX)
    if not path:
        return variables.get(name, "")
    if variables.get(name):
        raise ToolError(f"{name} and {name}{FILE_SUFFIX} are both set", advice="unset one of them", code=ExitCode.USAGE)
    return read_variable_file(name + FILE_SUFFIX, path)


def read_variable_file(variable: str, path: str) -> str:
    """Return the value in a file; raise ToolError, with the variable's name and never the content, if there is none."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_FILE_BYTES_MAX + 1)
        text = content.decode().removesuffix("\n").removesuffix("\r")
    except (OSError, ValueError) as error:
        found = error.strerror if isinstance(error, OSError) else "bytes that are not UTF-8"
        raise _wrong(variable, f"{path}: {found}") from error
    if len(content) > _FILE_BYTES_MAX:
        raise _wrong(variable, f"{path}: more than {_FILE_BYTES_MAX} bytes")
    return text


def _wrong(variable: str, found: str) -> ToolError:
    expected = "the path of a readable file with the value"
    return ToolError("the file is invalid", where=variable, expected=expected, found=found, code=ExitCode.USAGE)
