"""The file `rules` of a data directory on the disk: read whole, and replaced whole.

rules        the document (protocol/auth/rule_document.py), mode 0600
rules.new    its next version, until it is durable and renamed
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, final

from ambermq.log.storage.private_file import replace_private_file
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
        replace_private_file(str(self._path), encode_rules(rules))
