"""The metrics: names, kinds and explanations. docs/monitoring.md lists the same, and tests compare them.

Rule 1. A figure of `org.ambermq.broker` has the same name here, with `ambermq_` before it. A counter ends in `_total`.
Rule 2. A figure that is a text or a list becomes a number: whether there is one, or how many.
"""

from typing import Any, Final, NamedTuple

__all__ = [
    "BROKER_METRICS",
    "LAG_METRIC",
    "METRICS",
    "PREFIX",
    "QUEUE_METRICS",
    "RECOVERY_METRICS",
    "SYNC_METRIC",
    "VHOST_METRICS",
    "Metric",
    "number_of",
]

PREFIX: Final = "ambermq_"


class Metric(NamedTuple):
    """One metric."""

    name: str
    """Without the prefix, and without `_total`."""
    kind: str
    """`counter`, `gauge` or `histogram`."""
    text: str
    """The explanation."""

    @property
    def full_name(self) -> str:
        """The name as Prometheus reads it."""
        return f"{PREFIX}{self.name}_total" if self.kind == "counter" else f"{PREFIX}{self.name}"


def _counter(name: str, text: str) -> Metric:
    return Metric(name, "counter", text)


def _gauge(name: str, text: str) -> Metric:
    return Metric(name, "gauge", text)


BROKER_METRICS: Final = (
    _gauge(
        "certificate_expiry_seconds",
        "Time at which the first certificate of the broker and its chain ends, in seconds since 1970; 0: no TLS.",
    ),
    _gauge("connections", "Open connections."),
    _counter("connections_dropped", "Connections dropped for others before they had authenticated."),
    _gauge("connections_max", "Limit of connections."),
    _counter("connections_refused", "Connections that were closed at once."),
    _gauge("connections_unauthenticated", "Open connections that have not authenticated."),
    _gauge("descriptors_are_low", "1 while producers are held back because few file descriptors are free."),
    _gauge("descriptors_free", "Free file descriptors of the process."),
    _gauge("descriptors_free_low", "Free file descriptors below which producers are held back."),
    _gauge("descriptors_free_resume", "Free file descriptors with which they continue."),
    _gauge("descriptors_max", "Limit of open files of the process."),
    _gauge("interpreter_blocks", "Blocks of memory that the interpreter uses: a leak grows from day to day."),
    _gauge("memory_bytes", "Memory that peers make the broker hold."),
    _gauge("memory_bytes_max", "Limit of that memory."),
    _counter("memory_closed", "Connections closed because of that limit."),
    _gauge("memory_is_low", "1 while producers are held back because of that limit."),
    _gauge("process_memory_bytes", "Memory of the process, without pages of files."),
    _gauge("process_memory_high_bytes", "Memory of the process from which producers are held back."),
    _gauge("process_memory_is_low", "1 while producers are held back because of the memory of the process."),
    _gauge("process_memory_low_bytes", "Memory of the process below which they continue."),
    _gauge("started_us", "Time at which the broker began to serve, in microseconds since 1970."),
    _counter("telemetry_spans_dropped", "Spans of messages that the collector did not get."),
)
"""Without labels: they are of the whole broker."""

VHOST_METRICS: Final = (
    _gauge("blocked", "1 while producers are held back."),
    _gauge("clock_correction_us", "Difference between the times of events and the time at the start plus elapsed."),
    _gauge("clock_step", "1 if the clock was stepped since the start."),
    _counter("clock_steps", "Steps of the clock."),
    _gauge("compaction_is_running", "1 while the broker runs a compaction or retention."),
    _gauge("compaction_percent", "How much of its present stage a running compaction has done."),
    _gauge("compaction_us", "Time of the newest compaction since the start, in microseconds since 1970; 0: none."),
    _counter("compactions_failed", "Compactions of the broker that failed."),
    _gauge("consumers", "Links that receive from queues."),
    _gauge("consumers_starved", "Those of them that have no credit although messages wait on their queue."),
    _gauge("damaged_segments", "Damaged segments of the log."),
    _gauge("disk_bytes", "Size of the file system."),
    _gauge("disk_is_full", "1 while the disk has no room for the ballast."),
    _gauge("history_bytes", "Sealed segments from the horizon on."),
    _counter("bytes_in", "Bytes of messages from producers."),
    _counter("bytes_out", "Bytes of messages to consumers."),
    _counter("messages_accepted", "Deliveries that consumers accepted."),
    _counter("messages_cut_through", "Messages whose delivery began before their last piece had arrived."),
    _counter("messages_failed", "Deliveries that consumers returned as failed."),
    _counter("messages_in", "Messages from producers."),
    _counter("messages_out", "Messages to consumers; one that is sent again counts again."),
    _counter("messages_redelivered", "Messages to consumers that had failed before."),
    _counter("messages_refused", "Messages of producers that the broker rejected."),
    _counter("messages_rejected", "Deliveries that consumers rejected."),
    _counter("messages_released", "Deliveries that consumers returned, not as failed."),
    _counter("messages_unroutable", "Messages that no queue took, released to their producers."),
    _gauge("outcome_annotations_bytes", "Memory of the descriptions and annotations that outcomes left on messages."),
    _gauge("outcome_annotations_bytes_max", "Maximum of these bytes; what exceeds it is left out."),
    _counter("outcomes_late", "Outcomes of consumers that came after the end of a lock, and changed nothing."),
    _gauge("producers", "Links that send."),
    _gauge("producers_starved", "Those of them that have no credit."),
    _gauge("queues", "Queues."),
    _gauge("recovery_us", "Duration of the recovery at the start, in microseconds."),
    _gauge("resources_low", "Resources of which little is left: disk, memory, process-memory, descriptors."),
    _gauge("room_bytes", "Free disk space that publishing may use."),
    _gauge("room_bytes_min", "Free disk space below which history is deleted."),
    _gauge("room_is_low", "1 while producers are held back because little disk space is free."),
    _gauge("room_keeper", "1 while a requested snapshot keeps history on a full disk."),
    _gauge("room_low_bytes", "Free disk space below which producers are held back."),
    _gauge("room_resume_bytes", "Free disk space with which they continue."),
    _gauge("segments_without_index", "Sealed segments without an index."),
    _gauge("snapshot_bytes_expected", "Estimated size of the snapshot that is being written; 0: none."),
    _gauge("snapshot_bytes_written", "Bytes of it that are written."),
    _gauge("snapshot_failures", "Automatic snapshots that failed since the last one that succeeded."),
    _gauge("snapshot_us", "Time of the newest snapshot, in microseconds since 1970; 0: none."),
    _gauge("snapshots", "Snapshots."),
    _gauge("suspended_deliveries", "Deliveries and delivery-tags that suspended links keep."),
    _gauge("suspended_links", "Suspended links, which their clients may resume."),
    _gauge("sync_stalled_ms", "Duration of a sync after which the broker is not ready."),
    _gauge("sync_wait_us", "Duration of the sync that is timed now; 0: none."),
    _counter("transactions_committed", "Transactions of clients that were committed."),
    _gauge("transactions_open", "Open transactions."),
    _gauge("transactions_open_bytes", "Bytes of the messages of open transactions, which are in memory."),
    _counter("transactions_rolled_back", "Transactions that were rolled back, by clients or by the broker."),
    _gauge("unsynced_bytes", "Bytes of the log that are written and not durable."),
)
"""With the label `vhost`."""

QUEUE_METRICS: Final = (
    _gauge("queue_available_messages", "Messages that wait on the queue."),
    _gauge("queue_acquired_messages", "Messages out for delivery."),
    _gauge("queue_bytes", "Bytes of the messages on the queue."),
    _gauge("queue_consumers", "Links that receive from it."),
    _counter("queue_published_messages", "Messages published to it."),
    _counter("queue_delivered_messages", "Deliveries from it."),
    _counter("queue_accepted_messages", "Messages accepted."),
    _counter("queue_rejected_messages", "Messages rejected."),
    _counter("queue_released_messages", "Deliveries returned, not as failed."),
    _counter("queue_failed_messages", "Deliveries returned as failed."),
    _counter("queue_purged_messages", "Messages purged."),
    _counter("queue_discarded_messages", "Messages that the broker discarded by itself."),
    _counter("queue_damaged_messages", "Messages lost by damage of the log."),
    _counter("queue_dead_lettered_messages", "Messages that the broker moved to the dead-letter target."),
    _counter("queue_moved_messages", "Messages that a person moved to another queue."),
    _counter("queue_duplicate_messages", "Messages that were accepted and not stored, because their ids came before."),
    _gauge(
        "queue_undeliverable_messages",
        "Messages that are set aside for a dead-letter target that takes none now.",
    ),
    _gauge("queue_delayed_messages", "Messages that wait for their redelivery."),
    _gauge("queue_scheduled_messages", "Messages that are scheduled for later."),
    _gauge("queue_oldest_age_seconds", "Age of the oldest message that waits on the queue."),
)
"""With the labels `vhost` and `queue`. An empty `queue` is the sum of all queues without metrics of their own."""

RECOVERY_METRICS: Final = (
    _gauge("recovery_scanned_bytes", "Bytes of the log that the recovery has read; only while the broker recovers."),
    _gauge("recovery_total_bytes", "Bytes of the log that it reads; only while the broker recovers."),
)
"""Without labels, before the broker serves."""

SYNC_METRIC: Final = Metric("sync_seconds", "histogram", "Duration of a sync of the log; one at a time is timed.")
LAG_METRIC: Final = Metric("loop_lag_seconds", "histogram", "Delay of a timer of the event loop.")
METRICS: Final = (*RECOVERY_METRICS, *BROKER_METRICS, LAG_METRIC, *VHOST_METRICS, SYNC_METRIC, *QUEUE_METRICS)


def number_of(value: Any) -> float:
    """Return the number that a figure becomes."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, list | tuple):
        return float(len(value))
    return float(value is not None and value not in ("", {}))
