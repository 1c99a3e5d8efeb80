"""The file `rules` of a data directory: its text, a pure function both ways.

    ambermq rules 1
    allow alice receive,send orders.# default
    grant bob operator *
    crc32c XXXXXXXX             of every byte before this line (log/format/crc_document.py)

Rule 1. One rule a line: effect, subject, actions (a grant has none), pattern or role, virtual host. A blank inside a
        part is %20, and % is %25.
Rule 2. A damaged file is refused with its line: it never opens the door. A later version is refused, too.
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, unquote

from ambermq.engine.errors import EngineError
from ambermq.log.errors import LogError
from ambermq.log.format.crc_document import with_crc_line, without_crc_line
from ambermq.protocol.auth.rules import Effect, Rule, actions_named

__all__ = ["RULES_NAME", "RulesDamaged", "decode_rules", "encode_rules"]

RULES_NAME: Final = "rules"
"""The name of the file in the data directory."""
_HEAD: Final = "ambermq rules "
_VERSION: Final = "1"
_CRC: Final = "crc32c "
_PRINTED: Final = "".join(map(chr, range(0x21, 0x7F))).replace("%", "")


class RulesDamaged(EngineError):
    """A file of rules that is not what was written."""


def encode_rules(rules: Iterable[Rule]) -> bytes:
    """Return the bytes of the file."""
    lines = [_HEAD + _VERSION, *map(_line, sorted(set(rules)))]
    return with_crc_line("".join(f"{line}\n" for line in lines).encode())


def decode_rules(data: bytes, *, file: str) -> tuple[Rule, ...]:
    """Return the rules in the bytes of a file. Raises RulesDamaged with file and line."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise RulesDamaged(f"{file}, line {line}: expected UTF-8, found {data[error.start]:#x}") from error
    if not lines or not lines[0].startswith(_HEAD):
        found = lines[0] if lines else "an empty file"
        raise RulesDamaged(f"{file}, line 1: expected {_HEAD + _VERSION!r}, found {found!r:.80}")
    if lines[0] != _HEAD + _VERSION:
        found = lines[0].removeprefix(_HEAD)
        raise RulesDamaged(f"{file}, line 1: it has version {found!r:.80}, this program reads version {_VERSION}")
    has_crc = lines[-1].startswith(_CRC)
    rules = [_rule(line, f"{file}, line {number}") for number, line in enumerate(lines[1 : -1 if has_crc else None], 2)]
    try:
        without_crc_line(data, file=file)
    except LogError as error:
        raise RulesDamaged(f"{file}, line {len(lines)}: {error}") from error
    return tuple(rules)


def _line(rule: Rule) -> str:
    parts = (rule.effect, rule.subject, ",".join(rule.actions), rule.pattern, rule.vhost)
    return " ".join(quote(part, safe=_PRINTED) for part in parts if part)


def _rule(line: str, where: str) -> Rule:
    try:
        effect, subject, *actions, pattern, vhost = [unquote(part, errors="strict") for part in line.split(" ")]
        if len(actions) != (effect != Effect.GRANT):
            raise EngineError("expected EFFECT SUBJECT ACTIONS PATTERN VHOST")  # noqa: TRY301 - one clause for all
        named = tuple(one for text in actions for one in actions_named(text))
        return Rule(Effect(effect), subject, named, pattern, vhost)
    except (ValueError, EngineError) as error:
        raise RulesDamaged(f"{where}: {error}: found {line!r:.80}") from error
