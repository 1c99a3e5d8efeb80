"""The renderer of AMQP 1.0's types as Python, in the layout of the formatter.

Rule 1. Each type is rendered once: composite types as classes (performatives/classes.py), others as tables (spec.py).
Rule 2. A field of a class has its AMQP type as metadata. The codec derives writers and readers from it.
Rule 3. The tables keep the specification's names. This module makes the names of Python; only base.py maps them back.
"""

from collections.abc import Iterable, Iterator

from ambermq.tools.spec.oasis_xml import Composite, Field, Primitive, Restricted, Specification

__all__ = ["render_performatives", "render_tables"]

_LINE_LENGTH = 120

_TABLES_HEAD = '''"""AMQP 1.0 as tables: encodings, types, named values and constants.

`python -m ambermq.tools.spec --write` generates this file from the OASIS XML; `make spec` fails if it was edited.
"""

from typing import Final, NamedTuple
'''

_TABLES_TYPES = '''

class Encoding(NamedTuple):
    """An encoding of a primitive type."""

    name: str
    code: int
    category: str
    width: int
'''

_PERFORMATIVES_HEAD = '''"""The composite types of AMQP 1.0 as classes: performatives, termini, states and others.

`python -m ambermq.tools.spec --write` generates this file from the OASIS XML; `make spec` fails if it was edited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias
from uuid import UUID

from ambermq.protocol.amqp10.performatives.base import Composite
'''

_PYTHON_TYPES = {
    "boolean": "bool",
    "ubyte": "int",
    "ushort": "int",
    "uint": "int",
    "ulong": "int",
    "timestamp": "int",
    "uuid": "UUID",
    "binary": "bytes",
    "string": "str",
    "symbol": "str",
    "map": "dict[Any, Any]",
}


def render_tables(specification: Specification) -> str:
    """Return the text of protocol/amqp10/spec.py."""
    choices = [restricted for restricted in specification.restricted if restricted.choices]
    names = [_constant_name(name) for name, _ in specification.constants]
    names += [_choice_class_name(restricted.name) for restricted in choices]
    names += ["ARCHETYPES", "CHOICES", "DESCRIPTORS", "PRIMITIVES", "RESTRICTED", "Encoding"]
    lines = [
        _TABLES_HEAD,
        *_all(names),
        *(f"{_constant_name(name)}: Final = {value}" for name, value in specification.constants),
        _TABLES_TYPES,
    ]
    for restricted in choices:
        lines += _choice_class(specification, restricted)
    lines += [
        "",
        "PRIMITIVES: Final[dict[str, tuple[Encoding, ...]]] = {",
        *map(_primitive, specification.primitives),
        "}",
    ]
    lines += ['"""Name of a primitive type -> its encodings."""', "", "RESTRICTED: Final[dict[str, str]] = {"]
    lines += [f'    "{restricted.name}": "{restricted.source}",' for restricted in specification.restricted]
    lines += [
        "}",
        '"""Name of a restricted type -> the type that it restricts."""',
        "",
        "DESCRIPTORS: Final[dict[str, tuple[str, int]]] = {",
    ]
    lines += [
        f'    "{restricted.name}": ("{restricted.symbol}", {_hex(restricted.code)}),'
        for restricted in specification.restricted
        if restricted.code is not None
    ]
    lines += ["}", '"""Name of a described restricted type (a section) -> symbol and code."""', ""]
    lines += ["CHOICES: Final[dict[str, tuple[bool | int | str, ...]]] = {"]
    for restricted in choices:
        source = specification.source_of(restricted.name)
        words = [_literal(source, choice.value) for choice in restricted.choices]
        lines += _sequence(f'"{restricted.name}": (', words, ")", indent=4)
    lines += ["}", '"""Name of a restricted type -> its named values."""', ""]
    lines += ["ARCHETYPES: Final[dict[str, tuple[str, ...]]] = {"]
    for archetype in _archetypes(specification):
        providers = [f'"{name}"' for name in _providers(specification, archetype)]
        lines += _sequence(f'"{archetype}": (', providers, ")", indent=4)
    lines += ["}", '"""Name of an archetype -> the types that provide it; empty for any type."""', ""]
    return "\n".join(lines)


def render_performatives(specification: Specification) -> str:
    """Return the text of protocol/amqp10/performatives/classes.py."""
    aliases = _aliases(specification)
    names = [_class_name(name) for name in (*(composite.name for composite in specification.composites), *aliases)]
    lines = [_PERFORMATIVES_HEAD, *_all(["COMPOSITES", *names])]
    for composite in specification.composites:
        lines += _class(specification, composite, set(aliases))
    lines.append("")
    for archetype, providers in aliases.items():
        union = " | ".join(_class_name(name) for name in providers)
        lines += [f"{_class_name(archetype)}: TypeAlias = {union}"]
        lines += [f'"""The types that provide the archetype {archetype}."""', ""]
    lines.append("COMPOSITES: Final[dict[int, type[Composite]]] = {")
    lines += [f"    {_hex(c.code)}: {_class_name(c.name)}," for c in specification.composites]
    lines += ["}", '"""Code of a descriptor -> class."""', ""]
    return "\n".join(lines)


def _aliases(specification: Specification) -> dict[str, list[str]]:
    # A required archetype with several classes gets its own name, unless a class has it: delivery-state, outcome.
    classes = {composite.name for composite in specification.composites}
    required = [archetype for composite in specification.composites for archetype in _required(composite)]
    providers = {archetype: _providers(specification, archetype) for archetype in required}
    return {
        archetype: names
        for archetype, names in providers.items()
        if archetype not in classes and len(names) > 1 and classes.issuperset(names)
    }


def _all(names: Iterable[str]) -> Iterator[str]:
    yield "__all__ = ["
    yield from (f'    "{name}",' for name in sorted(names, key=_all_order))
    yield "]"
    yield ""


def _all_order(name: str) -> tuple[bool, str]:
    """Return the key that sorts constants before classes, as the linter does."""
    return (not name.isupper(), name)


def _primitive(primitive: Primitive) -> str:
    rows = [f'Encoding("{e.name}", {_hex(e.code)}, "{e.category}", {e.width})' for e in primitive.encodings]
    return "\n".join(_sequence(f'"{primitive.name}": (', rows, ")", indent=4))


def _choice_class(specification: Specification, restricted: Restricted) -> Iterator[str]:
    source = specification.source_of(restricted.name)
    yield ""
    yield f"class {_choice_class_name(restricted.name)}:"
    yield f'    """Values of {restricted.name}, a {source}."""'
    yield ""
    for choice in restricted.choices:
        yield f"    {_constant_name(choice.name)}: Final = {_literal(source, choice.value)}"
    yield ""


def _class(specification: Specification, composite: Composite, aliases: set[str]) -> Iterator[str]:
    provides = f"; provides {', '.join(composite.provides)}" if composite.provides else ""
    yield ""
    yield "@dataclass(slots=True, kw_only=True)"
    yield f"class {_class_name(composite.name)}(Composite):"
    yield f'    """The type {composite.name} of the part {composite.part}{provides}."""'
    yield ""
    yield f"    CODE: ClassVar[int] = {_hex(composite.code)}"
    yield f'    NAME: ClassVar[str] = "{composite.symbol}"'
    if composite.fields:
        yield ""
    for field in composite.fields:
        yield from _class_field(specification, field, aliases)
    yield ""


def _class_field(specification: Specification, field: Field, aliases: set[str]) -> Iterator[str]:
    opening = f"    {_attribute(field.name)}: {_annotation(specification, field, aliases)} = field("
    arguments = _field_arguments(specification, field)
    if len(opening) + len(arguments) < _LINE_LENGTH:
        yield f"{opening}{arguments})"
    else:
        yield from (opening, f"        {arguments}", "    )")


def _field_arguments(specification: Specification, field: Field) -> str:
    """Return the default, which a mandatory field lacks, and the AMQP type."""
    metadata = [f'"type": "{field.type}"']
    if field.type == "*" and field.requires is not None:
        metadata.append(f'"requires": "{field.requires}"')
    if field.multiple:
        metadata.append('"multiple": True')
    default = "" if field.mandatory else f"default={_default(specification, field)}, "
    return f"{default}metadata={{{', '.join(metadata)}}}"


def _annotation(specification: Specification, field: Field, aliases: set[str]) -> str:
    """Return the annotation of a field."""
    kinds = _kinds(specification, field)
    if field.requires in aliases:
        python_type = _class_name(field.requires)
    else:
        python_type = " | ".join(dict.fromkeys(_PYTHON_TYPES.get(kind) or _class_name(kind) for kind in kinds)) or "Any"
    if field.multiple:
        return f"tuple[{python_type}, ...]"
    is_always_there = field.mandatory or field.default is not None
    return python_type if is_always_there or not kinds else f"{python_type} | None"


def _kinds(specification: Specification, field: Field) -> tuple[str, ...]:
    """Return the primitive and composite types that a field may have; empty for any type."""
    if field.type != "*":
        return (specification.source_of(field.type),)
    return tuple(specification.source_of(name) for name in _providers(specification, field.requires))


def _providers(specification: Specification, archetype: str | None) -> list[str]:
    types: tuple[Restricted | Composite, ...] = (*specification.restricted, *specification.composites)
    return [each.name for each in types if archetype in each.provides]


def _archetypes(specification: Specification) -> list[str]:
    """List what composite types provide, and what a field of any type requires."""
    archetypes: list[str] = []
    for composite in specification.composites:
        archetypes += (*composite.provides, *_required(composite))
    return list(dict.fromkeys(archetypes))


def _required(composite: Composite) -> Iterator[str]:
    return (field.requires for field in composite.fields if field.type == "*" and field.requires is not None)


def _default(specification: Specification, field: Field) -> str:
    """Return the default; for a type with choices the XML gives the name of a choice."""
    if field.default is None:
        return "()" if field.multiple else "None"
    value = field.default
    for restricted in specification.restricted:
        if restricted.name == field.type:
            value = next((choice.value for choice in restricted.choices if choice.name == value), value)
    return _literal(specification.source_of(field.type), value)


def _literal(source: str, value: str) -> str:
    match source:
        case "boolean":
            return {"true": "True", "false": "False"}[value]
        case "symbol" | "string":
            return f'"{value}"'
        case _:
            return str(int(value))


def _sequence(opening: str, rows: list[str], closing: str, *, indent: int) -> Iterator[str]:
    """Rows on one line where they fit, else one a line."""
    space = " " * indent
    trailing = "," if len(rows) == 1 else ""
    line = f"{space}{opening}{', '.join(rows)}{trailing}{closing},"
    if len(line) <= _LINE_LENGTH:
        yield line
        return
    yield f"{space}{opening}"
    yield from (f"{space}    {row}," for row in rows)
    yield f"{space}{closing},"


def _hex(code: int | None) -> str:
    return f"0x{code:02X}"


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


def _choice_class_name(name: str) -> str:
    """Return the name of the type's class; an error type is a condition, since it is not an exception."""
    return _class_name(name.removesuffix("-error") + "-condition" if name.endswith("-error") else name)


def _constant_name(name: str) -> str:
    return name.replace("-", "_").upper()


def _attribute(name: str) -> str:
    return name.replace("-", "_")
