"""The OASIS XML of AMQP 1.0 as values: what the specification's types are, before anything is made of them.

Rule 1: names stay the specification's own, with hyphens; the renderer makes Python names of them.
Rule 2: order is the order of the XML files, and the files have a fixed order, so equal XML gives equal values.
"""

from dataclasses import dataclass
from pathlib import Path

# The XML is the specification from the system's own package, not input of a stranger.
from xml.etree import ElementTree as ET

__all__ = [
    "Choice",
    "Composite",
    "Encoding",
    "Field",
    "Primitive",
    "Restricted",
    "Specification",
    "read_specification",
]

_PARTS = ("types", "transport", "messaging", "security", "transactions")
_NAMESPACE = "{http://www.amqp.org/schema/amqp.xsd}"


@dataclass(frozen=True, slots=True)
class Encoding:
    """One way to write a primitive type."""

    name: str
    """The encoding's own name, or the type's where it has none."""
    code: int
    """The format code, 0 to 255."""
    category: str
    """fixed, variable, compound or array."""
    width: int
    """Bytes of the value (fixed), or of its size (variable), or of its size and count each."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type and its encodings."""

    name: str
    encodings: tuple[Encoding, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A named value of a restricted type."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Restricted:
    """A type that is another one with a meaning, and perhaps with named values."""

    name: str
    source: str
    provides: tuple[str, ...]
    symbol: str | None
    """The descriptor's symbol, where values of the type are described."""
    code: int | None
    """The descriptor's code."""
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a composite type."""

    name: str
    type: str
    """A type's name, or "*"."""
    requires: str | None
    """What a value must provide, where the type is "*"."""
    default: str | None
    mandatory: bool
    multiple: bool


@dataclass(frozen=True, slots=True)
class Composite:
    """A described list of named fields."""

    name: str
    symbol: str
    code: int
    provides: tuple[str, ...]
    fields: tuple[Field, ...]
    part: str
    """The part of the specification that defines it: transport, messaging, security or transactions."""


@dataclass(frozen=True, slots=True)
class Specification:
    """All that the five XML files say."""

    primitives: tuple[Primitive, ...]
    restricted: tuple[Restricted, ...]
    composites: tuple[Composite, ...]
    constants: tuple[tuple[str, int], ...]

    def source_of(self, type_name: str) -> str:
        """Resolve the primitive type, composite type or "*" that a type's name comes down to."""
        sources = {restricted.name: restricted.source for restricted in self.restricted}
        while type_name in sources:
            type_name = sources[type_name]
        return type_name


def read_specification(directory: Path) -> Specification:
    """Read the five files of the specification; FileNotFoundError when one is missing."""
    primitives: list[Primitive] = []
    restricted: list[Restricted] = []
    composites: list[Composite] = []
    constants: list[tuple[str, int]] = []
    for part in _PARTS:
        root = ET.parse(directory / f"{part}.bare.xml").getroot()  # noqa: S314  # see the import
        for element in root.iter(f"{_NAMESPACE}type"):
            match element.attrib["class"]:
                case "primitive":
                    primitives.append(_primitive(element))
                case "restricted":
                    restricted.append(_restricted(element))
                case "composite":
                    composites.append(_composite(element, part))
        constants += [_constant(element) for element in root.iter(f"{_NAMESPACE}definition")]
    return Specification(tuple(primitives), tuple(restricted), tuple(composites), tuple(constants))


def _primitive(element: ET.Element) -> Primitive:
    name = element.attrib["name"]
    encodings = tuple(
        Encoding(
            name=encoding.get("name", name),
            code=int(encoding.attrib["code"], 16),
            category=encoding.attrib["category"],
            width=int(encoding.attrib["width"]),
        )
        for encoding in element.iter(f"{_NAMESPACE}encoding")
    )
    return Primitive(name, encodings)


def _restricted(element: ET.Element) -> Restricted:
    symbol, code = _descriptor(element)
    return Restricted(
        name=element.attrib["name"],
        source=element.attrib["source"],
        provides=_provides(element),
        symbol=symbol,
        code=code,
        choices=tuple(
            Choice(choice.attrib["name"], choice.attrib["value"]) for choice in element.iter(f"{_NAMESPACE}choice")
        ),
    )


def _composite(element: ET.Element, part: str) -> Composite:
    symbol, code = _descriptor(element)
    assert symbol is not None
    assert code is not None
    fields = tuple(_field(field) for field in element.iter(f"{_NAMESPACE}field"))
    return Composite(element.attrib["name"], symbol, code, _provides(element), fields, part)


def _field(element: ET.Element) -> Field:
    return Field(
        name=element.attrib["name"],
        type=element.attrib["type"],
        requires=element.get("requires"),
        default=element.get("default"),
        mandatory=element.get("mandatory") == "true",
        multiple=element.get("multiple") == "true",
    )


def _descriptor(element: ET.Element) -> tuple[str | None, int | None]:
    """Read the symbol and the code; the XML writes the code's halves apart, domain:id."""
    descriptor = element.find(f"{_NAMESPACE}descriptor")
    if descriptor is None:
        return None, None
    domain, number = descriptor.attrib["code"].split(":")
    return descriptor.attrib["name"], int(domain, 16) << 32 | int(number, 16)


def _provides(element: ET.Element) -> tuple[str, ...]:
    return tuple(word.strip() for word in element.get("provides", "").split(",") if word.strip())


def _constant(element: ET.Element) -> tuple[str, int]:
    return element.attrib["name"], int(element.attrib["value"])
