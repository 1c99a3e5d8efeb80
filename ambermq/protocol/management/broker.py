"""The broker at the `$management` node: the type `org.ambermq.broker`, and the operation GET-LIMITS.

Rule 1. READ needs no name. It returns the figures that the gateway has (`Gateway.figures`): the server and the virtual
        host add theirs there. A figure without a source is null. Figures are cheap, since READ calls all of them.
Rule 2. A command that tries a change of wiring in memory reads the limits first. So it refuses only what the broker
        refuses.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ambermq.engine.commands import Command, Inspect

__all__ = ["BROKER_ATTRIBUTES", "BROKER_OPERATIONS", "BROKER_TYPE", "GET_LIMITS", "LIMITS", "limits"]

BROKER_TYPE: Final = "org.ambermq.broker"
BROKER_ATTRIBUTES: Final = (
    "blocked",
    "bytes_in",
    "bytes_out",
    "certificate_expiry_seconds",
    "clock_correction_us",
    "clock_step",
    "clock_steps",
    "compaction_is_running",
    "compaction_percent",
    "compaction_stage",
    "compaction_us",
    "compactions_failed",
    "connections",
    "connections_dropped",
    "connections_max",
    "connections_refused",
    "connections_unauthenticated",
    "consumers",
    "damaged_segments",
    "descriptors_are_low",
    "descriptors_free",
    "descriptors_free_low",
    "descriptors_free_resume",
    "descriptors_max",
    "disk_bytes",
    "disk_is_full",
    "health",
    "health_reason",
    "history_bytes",
    "interpreter_blocks",
    "memory_bytes",
    "memory_bytes_max",
    "memory_closed",
    "memory_is_low",
    "messages_accepted",
    "messages_cut_through",
    "messages_failed",
    "messages_in",
    "messages_out",
    "messages_redelivered",
    "messages_refused",
    "messages_rejected",
    "messages_released",
    "messages_unroutable",
    "outcome_annotations_bytes",
    "outcome_annotations_bytes_max",
    "outcomes_late",
    "process_memory_bytes",
    "process_memory_high_bytes",
    "process_memory_is_low",
    "process_memory_low_bytes",
    "producers",
    "queues",
    "recovery_us",
    "resources_low",
    "room_bytes",
    "room_bytes_min",
    "room_is_low",
    "room_keeper",
    "room_low_bytes",
    "room_resume_bytes",
    "segments_without_index",
    "snapshot_bytes_expected",
    "snapshot_bytes_written",
    "snapshot_failures",
    "snapshot_us",
    "snapshots",
    "started_us",
    "suspended_deliveries",
    "suspended_links",
    "sync_p50_us",
    "sync_p99_us",
    "sync_stalled_ms",
    "sync_wait_us",
    "telemetry_spans_dropped",
    "transactions_committed",
    "transactions_open",
    "transactions_open_bytes",
    "transactions_rolled_back",
    "unsynced_bytes",
)
"""The names of the figures; docs/management.md says what each is."""
GET_LIMITS: Final = "GET-LIMITS"
LIMITS: Final = (
    "argument_bytes_max",
    "attachments_max",
    "chain_muxers_max",
    "conditions_max",
    "muxers_max",
    "name_bytes_max",
    "queues_max",
)
"""The names of the limits, which are fields of EngineConfig."""


def limits(request: Any, _asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    """Return the command of a request."""
    config = request.peer.gateway.engine.config
    return Inspect(request, lambda _state: {name: getattr(config, name) for name in LIMITS})


def _read(request: Any, _asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    figures: Mapping[str, Callable[[], Any]] = request.peer.gateway.figures
    # Read with the state, so that answers leave in the order of their requests.
    return Inspect(
        request, lambda _state: {name: figures[name]() if name in figures else None for name in BROKER_ATTRIBUTES}
    )


BROKER_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "READ": _read
}
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
