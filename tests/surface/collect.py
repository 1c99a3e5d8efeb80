"""What the code has of the public surface, by category: a function each, pure but for `outputs`, which runs a broker.

Rule 1. A category is JSON of dicts and of lists, in which every item stands on a line of its own.
Rule 2. Names of modules, classes and files of the source are no part of it: they may change.
Rule 3. Values are taken from the objects that the program itself goes by. Where there is none, constants of the source
        are, whatever file they stand in.
"""

import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_args

import click

from ambermq.engine.address import MUXER_MEMBER, member_address, muxer_address, queue_address, topic_address
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import Event, Settled
from ambermq.engine.events.messages.fan_out import FANOUT
from ambermq.engine.events.messages.published import DURABLE, LARGE
from ambermq.engine.events.registry import BY_CLASS, REGISTRY, SKIPPABLE, TYPE_NAMES
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import QUEUE_MUXER, TOPIC_MUXER, MuxerKind
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.queue_template import PREDEFINED
from ambermq.engine.model.state import Consumer, Producer
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.records.event_fields import EVENT_TYPES, facts_of, type_of
from ambermq.engine.snapshots.link_codec import SubscriptionRow
from ambermq.engine.snapshots.muxer_codec import AttachmentRow, MuxerRow
from ambermq.engine.snapshots.queue_codec import EntriesRow, QueueRow
from ambermq.engine.snapshots.state_codec import Head
from ambermq.log.compaction.job import CompactionJob, base_path, jobs_path
from ambermq.log.format.segment import COMPRESSIBLE_VERSION, PLAIN_VERSION, index_path, segment_path
from ambermq.log.manifest.manifest import VERSION as MANIFEST_VERSION
from ambermq.log.manifest.manifest import Manifest, manifest_path, segments_path, snapshot_path
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST, VhostManifest, root_path, vhosts_path
from ambermq.log.manifest.vhost_manifest import VERSION as ROOT_VERSION
from ambermq.log.manifest.writer_lock import lock_path
from ambermq.protocol.amqp10.message.message import decode_message
from ambermq.protocol.gateway.links.attach_terms import (
    _IMMEDIATE,
    _NODE_CAPABILITIES,
    _SUBSCRIPTION_CAPABILITIES,
    _UNROUTABLE,
    LOG_ADDRESS,
)
from ambermq.protocol.gateway.links.dynamic_nodes import TOPIC_CAPABILITIES
from ambermq.protocol.gateway.links.routing_fields import _ATTRIBUTES as MESSAGE_FIELDS
from ambermq.protocol.gateway.links.source_filters import AT, NO_LOCAL_CODE, SELECTOR_CODE
from ambermq.protocol.gateway.nodes.cbs_node import ADDRESS as CLAIMS_ADDRESS
from ambermq.protocol.gateway.nodes.cbs_node import CbsNode
from ambermq.protocol.gateway.nodes.management_node import _STATUS as STATUS_CODES
from ambermq.protocol.gateway.nodes.management_node import ADDRESS as MANAGEMENT_ADDRESS
from ambermq.protocol.gateway.nodes.management_node import ManagementNode
from ambermq.protocol.gateway.opening.open_checks import OFFERED, PRODUCT
from ambermq.protocol.gateway.sources.event_source import message_of
from ambermq.protocol.management.broker import LIMITS
from ambermq.protocol.management.operations import _DESCRIPTIONS, _NODE_OPERATIONS, KINDS, NODE_TYPE
from ambermq.protocol.management.paging import page_of
from ambermq.protocol.management.request_fields import name_property
from ambermq.protocol.management.vhosts import HOSTNAME_PREFIX
from ambermq.snapshot.block_file import VERSION as SNAPSHOT_VERSION
from ambermq.snapshot.block_file import BlockKind
from ambermq.tools.backup.format import SNAPSHOT_PART, TABLE_NAME, Table, segment_part_name
from ambermq.tools.backup.format import VERSION as BACKUP_VERSION
from ambermq.tools.cli import main
from ambermq.tools.config.attachment_options import ARGUMENT_KEYS
from ambermq.tools.config.settings import Settings
from ambermq.tools.config.template_settings import TEMPLATE_KEYS
from ambermq.tools.dataset.archive_reader import Archive
from ambermq.tools.dataset.parquet_files import NO_QUEUE
from ambermq.tools.dataset.schema import CONTENT_COLUMNS, EVENT_COLUMNS, MESSAGE_COLUMNS, UNREADABLE
from ambermq.tools.messages.message_text import MessageDraft
from ambermq.tools.spark.data_source import _CHOICES, OPTION_NAMES, EventSource
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.wiring.document import _KEYS as WIRING_KEYS
from tests.engine.events.samples import QUEUE, SAMPLES
from tests.surface.outputs import NOT_RUN, run_all
from tests.surface.shapes import keys_of_type, keys_of_value
from tests.surface.sources import called_with, matching, names_in_bytes, words_of_modules

__all__ = ["CATEGORIES", "json_commands"]


def commands() -> dict[str, Any]:
    """Return each command with its options and arguments."""
    found = {" ".join(path): [*_parameters(command)] for path, command in _commands(main, ("ambermq",))}
    return found | {"each of them": [", ".join(main.context_settings["help_option_names"])]}


def json_commands() -> frozenset[str]:
    """Return the commands that print JSON when they are asked to."""
    asking = {"--output", "--ndjson"}
    found = (path for path, command in _commands(main, ()) if any(asking & {*one.opts} for one in command.params))
    return frozenset(" ".join(path) for path in found)


def exit_codes() -> dict[str, Any]:
    """Return the name of each exit code."""
    return {str(code.value): code.name for code in ExitCode}


def environment() -> list[str]:
    """Return the environment variables that the program reads."""
    # With two underscores it is a key of the configuration.
    return [name for name in matching("AMBERMQ_[A-Z_]+") if "__" not in name]


def configuration() -> dict[str, Any]:
    """Return the tables of a configuration file, each with its keys and their defaults."""
    tables: dict[str, Any] = {one.name: _keys_of_table(one) for one in fields(Settings)}
    # The keys of listeners are in the table of the server.
    tables["server"] += tables.pop("listeners")
    tables["templates"] = [*TEMPLATE_KEYS]
    tables["templates.attach"] = ["muxer", *ARGUMENT_KEYS]
    tables["templates there are without any"] = [f"{one.name} = {one.pattern!r}" for one in PREDEFINED.ordered]
    return tables


def outputs() -> dict[str, Any]:
    """Return the key paths of the JSON that each command prints."""
    with tempfile.TemporaryDirectory() as place:
        found = run_all(Path(place))
    return {name: sorted(keys) for name, keys in sorted((found.keys | NOT_RUN).items())}


def documents() -> dict[str, Any]:
    """Return the keys of JSON and TOML that commands take."""
    return {
        "message of send --ndjson and receive": keys_of_type(MessageDraft),
        "wiring": {table: [*keys] for table, keys in WIRING_KEYS.items()},
    }


def management() -> dict[str, Any]:
    """Return the types of `$management` with their operations and attributes, and the keys of requests and answers."""
    types = {
        name: {"attributes": [*kind.attributes], "operations": sorted(kind.operations)} for name, kind in KINDS.items()
    }
    operations = [one for kind in KINDS.values() for one in kind.operations.values()]
    asked = (*operations, *_NODE_OPERATIONS.values(), ManagementNode, CbsNode, name_property, page_of)
    return {
        "types": types,
        "node": {"type": NODE_TYPE, "operations": sorted((*_DESCRIPTIONS, *_NODE_OPERATIONS))},
        "limits": [*LIMITS],
        "status codes": [f"{condition} {code}" for condition, code in STATUS_CODES.items()],
        "keys of requests and answers": words_of_modules(map(_module_of, asked)),
    }


def amqp() -> dict[str, Any]:
    """Return what a peer of the broker may write and read: addresses, capabilities, filters, properties, conditions."""
    return {
        "addresses": [*_addresses()],
        "capabilities offered": sorted(OFFERED),
        "capabilities of a node": sorted(_NODE_CAPABILITIES),
        "capabilities of a source": sorted(_SUBSCRIPTION_CAPABILITIES),
        "capabilities of a target": sorted((*_UNROUTABLE, _IMMEDIATE)),
        "capabilities of a topic": sorted(TOPIC_CAPABILITIES),
        "filters": [str(AT), f"{SELECTOR_CODE:#018x} selector", f"{NO_LOCAL_CODE:#018x} no-local"],
        "fields of a message in conditions": {str(code): sorted(names) for code, names in MESSAGE_FIELDS.items()},
        "properties of a connection": sorted(f"{key} = {value}" for key, value in PRODUCT.items()),
        "symbols": called_with("Symbol"),
        "names with a prefix": matching(
            r"amqp:[a-z:*-]+",
            r"(?:ambermq|apache\.org|vhost|muxer):[a-z:-]*",
            r"org\.[a-z.]+",
            "x-opt-.*",
            r"\$[a-z.]*",
            "ANONYMOUS|PLAIN|MSSBCBS",
        ),
    }


def words() -> dict[str, Any]:
    """Return the names and numbers of what there is a fixed list of."""
    return {
        "classes of muxers": {str(kind.value): kind.text for kind in MuxerKind},
        "lifetimes": _numbered(Lifetime),
        "modes": {str(mode.value): mode.text for mode in VhostMode},
        "muxers there are without any": [QUEUE_MUXER, TOPIC_MUXER],
        "outcomes": _numbered(OutcomeKind),
        "unroutable": _numbered(Unroutable),
        "virtual host there is without any": DEFAULT_VHOST,
    }


def events() -> dict[str, Any]:
    """Return the types of events: their numbers, columns, facts, and what a message of `/log` says beside them."""
    assert {type(one.event) for one in SAMPLES} == {*get_args(Event)}, "samples.py lacks a type of event"
    return {
        "order of types": [*EVENT_TYPES],
        "record types": {str(number): name for number, name in TYPE_NAMES.items()},
        "record flags": {"durable": DURABLE, "large": LARGE, "fanout": FANOUT, "skippable": SKIPPABLE},
        "columns": {one.name: [*one.event.__struct_fields__] for one in REGISTRY},
        "facts": _united(lambda one: keys_of_value(facts_of(one, _name))),
        "application properties of /log": _united(
            lambda one: decode_message(message_of(one, _name)).application_properties or {}
        ),
    }


def data_source() -> dict[str, Any]:
    """Return the Data Source of Spark: its name, options and columns."""
    return {
        "name": EventSource.name(),
        "options": [*OPTION_NAMES],
        "choices": {name: [*choices] for name, choices in _CHOICES.items()},
        "columns": [f"{name} {kind}" for name, kind in EVENT_COLUMNS.items()],
        "columns when asked for": [f"{name} {kind}" for name, kind in CONTENT_COLUMNS.items()],
        "columns of messages": sorted(MESSAGE_COLUMNS),
        "type of what cannot be read": UNREADABLE,
        "partition of events about no queue": NO_QUEUE,
    }


def files() -> dict[str, Any]:
    """Return names, magics, layouts, versions and JSON keys of the files."""
    return {
        "paths": [*_paths()],
        "parts of a backup": [TABLE_NAME, SNAPSHOT_PART, segment_part_name(1)],
        "parts of paths": matching(r"/(?!proc|stat)[A-Za-z]{3,}/?"),
        "endings": matching(r"\.[a-z]+(?:\.new)?"),
        "names in bytes": names_in_bytes(),
        "layouts": called_with("Struct", lambda text: text[0] in "<="),
        "versions": {
            "backup": BACKUP_VERSION,
            "manifest": MANIFEST_VERSION,
            "root manifest": ROOT_VERSION,
            "segment": [PLAIN_VERSION, COMPRESSIBLE_VERSION],
            "snapshot": SNAPSHOT_VERSION,
        },
        "blocks of a snapshot": _numbered(BlockKind),
        "keys": {name: keys_of_type(kind) for name, kind in _DOCUMENTS.items()} | _keys_of_records(),
    }


CATEGORIES: Final[Mapping[str, Callable[[], Any]]] = {
    "amqp": amqp,
    "commands": commands,
    "configuration": configuration,
    "data_source": data_source,
    "documents": documents,
    "environment": environment,
    "events": events,
    "exit_codes": exit_codes,
    "files": files,
    "management": management,
    "outputs": outputs,
    "words": words,
}
"""The name of a golden file to what makes it."""

_DOCUMENTS: Final[Mapping[str, Any]] = {
    "MANIFEST": Manifest,
    "VHOSTS": VhostManifest,
    "TABLE of a job": CompactionJob,
    "archive": Archive,
    "backup": Table,
    "snapshot: attachment": AttachmentRow,
    "snapshot: consumer": Consumer,
    "snapshot: entries": EntriesRow,
    "snapshot: muxer": MuxerRow,
    "snapshot: producer": Producer,
    "snapshot: queue": QueueRow,
    "snapshot: state": Head,
    "snapshot: subscription": SubscriptionRow,
}


def _keys_of_records() -> dict[str, list[str]]:
    metas = {one.json for one in REGISTRY if one.json is not None and one.event is not Settled}
    keys = {key for meta in metas for key in keys_of_type(meta)}
    return {"record: meta": sorted(keys), "record: outcome": keys_of_type(BY_CLASS[Settled].json)}


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, (*path, name))


def _parameters(command: click.Command) -> Iterator[str]:
    # An argument is told by its place, an option by its name.
    yield from (f"{_argument(one)}" for one in command.params if isinstance(one, click.Argument))
    yield from sorted(_option(one) for one in command.params if isinstance(one, click.Option))


def _argument(one: click.Argument) -> str:
    count = "" if one.nargs == 1 else f", {one.nargs} of them"
    return f"{one.human_readable_name}: {_type(one)}{'' if one.required else ', optional'}{count}{_default(one)}"


def _option(one: click.Option) -> str:
    names = "/".join(filter(None, (", ".join(one.opts), ", ".join(one.secondary_opts))))
    says = ["flag" if one.is_flag else _type(one), *(["required"] if one.required else [])]
    says += ["multiple"] if one.multiple else []
    says += [f"variable {one.envvar}"] if one.envvar else []
    return f"{names}: {', '.join(says)}{_default(one)}"


def _type(one: click.Parameter) -> str:
    kind = one.type
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    if isinstance(kind, click.IntRange | click.FloatRange):
        return f"{kind.name} {kind.min} to {kind.max}"
    return kind.name


def _default(one: click.Parameter) -> str:
    value = one.default
    is_said = isinstance(value, bool | int | float | str) and value is not False
    return f", default {value}" if is_said else ""


def _keys_of_table(table: Field[Any]) -> list[str]:
    if table.default_factory is MISSING or table.default_factory is dict:
        return []
    default = table.default_factory()
    # Templates are tables of their own.
    named = (one for one in fields(default) if (type(default), one.name) != (EngineConfig, "templates"))
    return [f"{one.name} = {getattr(default, one.name)!r}" for one in named]


def _module_of(what: Any) -> ModuleType:
    module = inspect.getmodule(what)
    assert module is not None
    return module


def _addresses() -> Iterator[str]:
    yield from (queue_address("q"), member_address("q"), muxer_address("m"), topic_address("t"))
    yield from (LOG_ADDRESS, MANAGEMENT_ADDRESS, CLAIMS_ADDRESS, f"{MUXER_MEMBER}m", f"{HOSTNAME_PREFIX}v")


def _name(queue: int) -> str | None:
    return "queue" if queue == QUEUE else None


def _united(tell: Callable[[Event], Any]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for one, *_ in SAMPLES:
        found.setdefault(type_of(one), set()).update(tell(one))
    return {name: sorted(keys) for name, keys in found.items()}


def _numbered(kind: Any) -> dict[str, str]:
    return {str(one.value): one.name for one in kind}


def _paths() -> Iterator[str]:
    yield from (root_path("DIR"), vhosts_path("DIR"), manifest_path("DIR"), lock_path("DIR"), segments_path("DIR"))
    yield from (segment_path("DIR", 1), index_path("DIR", 1), snapshot_path("DIR", 1))
    yield from (jobs_path("DIR"), base_path("DIR", "job"))
