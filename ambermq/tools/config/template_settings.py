"""The tables `[[templates]]` of the broker's configuration. Pure: decoded TOML in, templates out.

    [[templates]]
    name = "orders"                  the template's name, an attribute of its queues
    pattern = "orders.#"             a pattern of queue names; none: only queues that name the template
    messages_max = 100000            and every other property of a queue
    attach = [{ muxer = "audit" }]   with one of destination, pattern, property or selector, by the muxer's class

Rule: a queue gets the first template whose pattern matches its name; the predefined templates come last.
"""

from collections.abc import Mapping
from typing import Any, Final

from ambermq.engine.address import parse_address
from ambermq.engine.errors import EngineError, Refused
from ambermq.engine.model.queue_template import PREDEFINED, QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.patterns.pattern import check_pattern
from ambermq.engine.selectors.fields import fault_of
from ambermq.engine.settings.queue_settings import new_settings
from ambermq.engine.settings.setting_conflicts import check_combination
from ambermq.engine.settings.setting_table import SETTINGS, SettingKind
from ambermq.tools.config.attachment_options import ARGUMENT_KEYS, options_in
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["TEMPLATE_KEYS", "read_templates"]

TEMPLATE_KEYS: Final = ("name", "pattern", *SETTINGS, "attach")


def read_templates(tables: Any, path: str, mistakes: list[ToolError]) -> QueueTemplates:
    """Return the templates of a file, then the predefined ones; append what is wrong to `mistakes`."""
    if not isinstance(tables, list):
        mistakes.append(_wrong(path, "templates", "tables [[templates]]", repr(tables)))
        tables = []
    templates: list[QueueTemplate] = []
    for number, table in enumerate(tables, 1):
        where = f"{path} [[templates]] {number}"
        try:
            template = _read(table, where, mistakes)
            if any(template.name == other.name for other in templates):
                raise _wrong(where, "name", "a name that no template above has", repr(template.name))
        except ToolError as mistake:
            mistakes.append(mistake)
        else:
            templates.append(template)
    return QueueTemplates(tuple(templates)).with_defaults()


def _read(table: Any, where: str, mistakes: list[ToolError]) -> QueueTemplate:
    """Return a template; append the mistakes of its properties to `mistakes`, raise ToolError for another one."""
    if not isinstance(table, dict):
        raise _wrong(where, "the template", "a table", repr(table))
    advice = f"known are {', '.join(TEMPLATE_KEYS)}"
    mistakes += [
        ToolError(f"{key} is unknown", where=where, advice=advice, code=ExitCode.USAGE)
        for key in table
        if key not in TEMPLATE_KEYS
    ]
    name, default = _text(table, "name", where), PREDEFINED.named(str(table.get("name")))
    if not name or not name.isprintable():
        raise _wrong(where, "name", "text in quotes", repr(name))
    # A table for a predefined template without a pattern keeps the predefined pattern.
    pattern = _text(table, "pattern", where, default.pattern if default is not None else "")
    try:
        if pattern:
            check_pattern(pattern, ".")
    except EngineError as error:
        raise _wrong(where, "pattern", "a pattern", str(error)) from error
    properties: dict[str, Any] = {}
    for key in SETTINGS:
        try:
            properties |= {key: _property(table, key, where)} if key in table else {}
        except ToolError as mistake:
            mistakes.append(mistake)
    settings = new_settings(name, **properties)
    try:
        check_combination(settings)
    except EngineError as error:
        mistakes.append(ToolError(str(error), where=where, code=ExitCode.USAGE))
    return QueueTemplate(settings, pattern, _attach(table.get("attach", []), where))


def _property(table: Mapping[str, Any], key: str, where: str) -> Any:
    setting = SETTINGS[key]
    try:
        value = setting.value_of(table[key])
    except EngineError as error:
        raise _wrong(where, key, setting.expected, repr(table[key])) from error
    if setting.kind is SettingKind.ADDRESS and value:
        try:
            # Whether there is such a node shows when a queue is declared; a name may be as long as the broker allows.
            parse_address(str(value), name_bytes_max=len(str(value).encode("utf-8", "surrogatepass")))
        except Refused as refused:
            raise _wrong(where, key, setting.expected, refused.description) from refused
    return value


def _attach(tables: Any, where: str) -> tuple[TemplateAttachment, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _wrong(where, "attach", 'a list of { muxer = "NAME" }', repr(tables))
    return tuple(_attachment(table, where) for table in tables)


def _attachment(table: Mapping[str, Any], where: str) -> TemplateAttachment:
    for key in table:
        if key not in ("muxer", *ARGUMENT_KEYS):
            raise _wrong(where, "attach", f"muxer and one of {', '.join(ARGUMENT_KEYS)}", repr(key))
    muxer = _text(table, "muxer", where)
    try:
        options = options_in(table)
    except EngineError as error:
        raise _wrong(where, "attach", "an argument", str(error)) from error
    for condition in options.argument if isinstance(options.argument, tuple) else ():
        if fault := fault_of(condition.name):
            raise _wrong(where, "attach", "the name of a message property", f"{condition.name!r}: {fault}")
    return TemplateAttachment(muxer, options.argument, options.called)


def _text(table: Mapping[str, Any], key: str, where: str, default: str = "") -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise _wrong(where, key, "text in quotes", repr(value))
    if not value and key == "muxer":
        raise _wrong(where, "attach", "the name of a muxer", "none")
    return value


def _wrong(where: str, name: str, expected: str, found: str) -> ToolError:
    return ToolError(f"{name} is invalid", where=where, expected=expected, found=found, code=ExitCode.USAGE)
