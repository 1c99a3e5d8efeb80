"""The closed union of all commands."""

from ambermq.engine.commands.compaction import CompactionCommand, RecordCompaction
from ambermq.engine.commands.deferred import ScheduleMessages, SettleNamed, TakeDeferred
from ambermq.engine.commands.lifecycle import EndNodes, EndUnusedQueue, ResetHost
from ambermq.engine.commands.links import (
    AttachConsumer,
    AttachProducer,
    DetachConsumer,
    DetachProducer,
    EndLinks,
    EndSuspended,
    ExpireLinks,
    ResendHeld,
    SettleTags,
)
from ambermq.engine.commands.messages import GiveUp, MakeDue, Publish, RenewLocks, ReportDamage, Settle
from ambermq.engine.commands.moves import EditMessages, FindMessages, MoveMessages, RemoveMessages
from ambermq.engine.commands.muxers import AttachMember, DeclareMuxer, DeleteMuxer, DetachMember, UpdateMuxer
from ambermq.engine.commands.questions import ExplainRoute, Inspect, NoteBrowser
from ambermq.engine.commands.queues import DeclareQueue, DeleteQueue, DeleteSubscription, PurgeQueue, UpdateQueue
from ambermq.engine.commands.snapshots import SnapshotCommand
from ambermq.engine.commands.transactions import BeginTransaction, Discharge, TidyQueues
from ambermq.engine.commands.uploads import EndUpload, StoreChunk

__all__ = ["Command"]

Command = (
    Publish
    | Settle
    | GiveUp
    | MakeDue
    | RenewLocks
    | TakeDeferred
    | ScheduleMessages
    | SettleNamed
    | ReportDamage
    | BeginTransaction
    | Discharge
    | TidyQueues
    | StoreChunk
    | EndUpload
    | AttachProducer
    | DetachProducer
    | AttachConsumer
    | DetachConsumer
    | EndLinks
    | ResendHeld
    | SettleTags
    | ExpireLinks
    | EndSuspended
    | DeclareQueue
    | UpdateQueue
    | DeleteQueue
    | PurgeQueue
    | FindMessages
    | MoveMessages
    | EditMessages
    | RemoveMessages
    | DeleteSubscription
    | DeclareMuxer
    | UpdateMuxer
    | DeleteMuxer
    | AttachMember
    | DetachMember
    | EndNodes
    | EndUnusedQueue
    | ResetHost
    | RecordCompaction
    | CompactionCommand
    | Inspect
    | NoteBrowser
    | ExplainRoute
    | SnapshotCommand
)
"""Every command of the engine."""
