"""The keys that a reload changes in a running broker.

Rule 1. A key that is not here needs a restart. So a new key is never promised to change live by accident.
Rule 2. A live limit holds from its next use. A lowered limit cuts nothing that exists: connections, links and queues
        stay, and durable links may attach again. So the limits of names, arguments and memory need a restart.
Rule 3. All keys of a table in WHOLE_TABLES are live.
"""

from typing import Final

__all__ = ["is_live"]

_WHOLE_TABLES: Final = frozenset(
    {"compaction", "connection", "logging", "permissions", "retention", "templates", "users"}
)
_LIVE_KEYS: Final = {
    "engine": frozenset(
        {
            *("tick_changes_max", "dispatch_messages_max", "dispatch_bytes_max", "scan_messages_max"),
            *("dead_letter_moves_max", "dead_letter_queues_max", "dead_letter_retry_ms"),
            *("queue_messages_max", "queues_max", "consumers_max", "producers_max", "muxers_max"),
            *("message_queues_max", "attachments_max", "chain_muxers_max", "auto_create"),
            *("snapshot_bytes", "snapshot_events", "snapshot_interval_s", "snapshot_pause_s", "snapshot_keep"),
            *("snapshot_age_s_max", "snapshot_bytes_per_s", "snapshots_waiting_max", "snapshots_max"),
        }
    ),
    "server": frozenset(
        {
            *("connections_max", "local_connections_reserved", "address_strangers_max", "address_accepts_max"),
            *(
                "user_connections_max",
                "vhosts_max",
                "handshake_ms",
                "handshake_bytes_min",
                "credit_max",
                "credit_grown_max",
            ),
            *("run_bytes_max", "output_high_bytes", "output_max_bytes", "write_timeout_ms", "grant_bytes"),
            *("room_low_bytes", "room_resume_bytes", "descriptors_free_low", "descriptors_free_resume"),
            *("process_memory_high_bytes", "process_memory_low_bytes"),
            *("goodbye_ms", "shutdown_ms", "query_results_max", "sources_max"),
            *("source_messages", "source_bytes", "browse_ms_max", "past_bytes_max"),
        }
    ),
}


def is_live(table: str, name: str) -> bool:
    """Return whether a reload changes a key."""
    return table in _WHOLE_TABLES or name in _LIVE_KEYS.get(table, ())
