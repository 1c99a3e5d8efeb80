"""The file `rules` of a data directory on the disk: read whole, and replaced whole.

rules        the document (protocol/auth/rule_document.py), mode 0600
rules.new    its next version, until it is durable and renamed
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from ambermq.protocol.auth.rule_document import RULES_NAME, RulesDamaged, decode_rules, encode_rules
from ambermq.protocol.auth.rules import Rule
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["RULES_MAX", "RuleFile"]

RULES_MAX: Final = 10_000
"""The rules of one broker: each change sorts and writes all of them."""


@final
class RuleFile:
    """The file of one data directory."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._path = self._directory / RULES_NAME

    def read(self) -> tuple[Rule, ...]:
        """Return the rules; none if there is no file. Raises ToolError with exit code 2 for a damaged file."""
        try:
            data = self._path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return ()
        try:
            return decode_rules(data, file=str(self._path))
        except RulesDamaged as error:
            advice = "restore it from a backup, or write it again with `ambermq acl`"
            raise ToolError(str(error), advice=advice, code=ExitCode.USAGE) from error

    def write(self, rules: Iterable[Rule]) -> None:
        """Replace the file; when this returns, the rules are durable. Raises OSError."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._path.with_name(f"{RULES_NAME}.new")
        with suppress(FileNotFoundError):
            new.unlink()
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(encode_rules(rules))
            stream.flush()
            os.fsync(descriptor)
        new.replace(self._path)
        _sync_directory(self._directory)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
