"""The checks of an attachment's argument, by the class of its muxer. They run once, when the attachment is created.

Rule: a new argument with a field name that no message can have is refused. An older log may have attachments with such
names: they never match, and stay until they are detached.
"""

import math
from typing import Final, NoReturn

from ambermq.engine.config import EngineConfig
from ambermq.engine.errors import PatternError, Refused, SelectorError
from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.muxer import Muxer, MuxerKind
from ambermq.engine.patterns.pattern import check_pattern
from ambermq.engine.selectors.fields import fault_of
from ambermq.engine.selectors.selector import parse_selector

__all__ = ["ARGUMENT_NAMES", "check_argument", "check_argument_name", "check_names"]

ARGUMENT_NAMES: Final = {
    MuxerKind.DESTINATION: "destination",
    MuxerKind.WILD_DESTINATION: "pattern",
    MuxerKind.PROPERTY: "conditions",
    MuxerKind.WILD_PROPERTY: "conditions",
    MuxerKind.SELECTOR: "selector",
}
"""The name of the argument by the class of the muxer; the other classes have none."""


_EVERYTHING: Final = "matches every message: its attachments have no argument"
_CONDITIONS: Final = "needs one or more conditions"
_NEEDS: Final = {
    MuxerKind.SIMPLE: _EVERYTHING,
    MuxerKind.LOSSY: _EVERYTHING,
    MuxerKind.DESTINATION: "needs a destination",
    MuxerKind.WILD_DESTINATION: "needs a pattern",
    MuxerKind.PROPERTY: _CONDITIONS,
    MuxerKind.WILD_PROPERTY: _CONDITIONS,
    MuxerKind.SELECTOR: "needs a selector",
}


def check_argument_name(muxer: Muxer, argument_name: str) -> None:
    """Raise Refused if the command names the argument of another class of muxer."""
    if argument_name and argument_name != ARGUMENT_NAMES.get(muxer.kind):
        _refuse(muxer, f"{_NEEDS[muxer.kind]}, found {argument_name}")


def check_argument(muxer: Muxer, argument: Argument, config: EngineConfig) -> None:
    """Raise Refused with amqp:invalid-field if the muxer cannot match with an argument."""
    kind = muxer.kind
    if kind in (MuxerKind.SIMPLE, MuxerKind.LOSSY):
        if argument is not None:
            _refuse(muxer, _NEEDS[kind])
    elif kind in (MuxerKind.PROPERTY, MuxerKind.WILD_PROPERTY):
        if not isinstance(argument, tuple) or not argument:
            _refuse(muxer, _NEEDS[kind])
        _check_conditions(muxer, argument, config)
    elif not isinstance(argument, str):
        _refuse(muxer, _NEEDS[kind])
    else:
        _check_size(muxer, argument, config)
        _check_text(muxer, argument, config)


def check_names(muxer: Muxer, argument: Argument) -> None:
    """Raise Refused with amqp:invalid-field if a condition names a field that no message has."""
    for condition in argument if isinstance(argument, tuple) else ():
        if fault := fault_of(condition.name):
            _refuse(muxer, f"compares fields of messages, found {condition.name!r:.80}: {fault}")


def _check_text(muxer: Muxer, text: str, config: EngineConfig) -> None:
    try:
        if muxer.kind is MuxerKind.WILD_DESTINATION:
            check_pattern(text, muxer.options.separator)
        elif muxer.kind is MuxerKind.SELECTOR:
            parse_selector(text, bytes_max=config.argument_bytes_max, tokens_max=config.selector_tokens_max)
    except (PatternError, SelectorError) as error:
        raise Refused("amqp:invalid-field", str(error)) from error


def _check_conditions(muxer: Muxer, conditions: tuple[Condition, ...], config: EngineConfig) -> None:
    if len(conditions) > config.conditions_max:
        _refuse(muxer, f"takes {config.conditions_max} conditions (conditions_max), found {len(conditions)}")
    for condition in conditions:
        _check_size(muxer, condition.name, config)
        if isinstance(condition.value, str):
            _check_size(muxer, condition.value, config)
        elif isinstance(condition.value, float) and not math.isfinite(condition.value):
            _refuse(muxer, f"compares with finite numbers, found {condition.value}")
        elif isinstance(condition.value, int) and not -(1 << 63) <= condition.value < 1 << 64:
            _refuse(muxer, "compares with whole numbers of 64 bits, found a longer one")
        if muxer.kind is MuxerKind.WILD_PROPERTY and condition.has_value:
            if not isinstance(condition.value, str):
                _refuse(muxer, f"compares with patterns, found {condition.value!r}")
            try:
                check_pattern(condition.value, muxer.options.separator)
            except PatternError as error:
                raise Refused("amqp:invalid-field", f"{condition.name}: {error}") from error


def _check_size(muxer: Muxer, text: str, config: EngineConfig) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        # No message can contain it: half of a surrogate pair, which JSON can write.
        _refuse(muxer, f"compares with text of Unicode, found {text!r:.80}")
    if size > config.argument_bytes_max:
        _refuse(muxer, f"takes {config.argument_bytes_max} bytes (argument_bytes_max), found {size}")


def _refuse(muxer: Muxer, why: str) -> NoReturn:
    raise Refused("amqp:invalid-field", f"muxer {muxer.name!r} of class {muxer.kind.text} {why}")
