"""The parts of a queue's value: columns, holdings, priority levels, last values, groups, window of ids, counters.

Rule 1. A part knows nothing of the queue that has it, nor of the state.
Rule 2. Values are immutable, and equal after every replay.
Rule 3. A queue without the feature has a part that is empty, and costs a message nothing.

Imports: engine/entries, snapshot.
Imported by: engine/model, engine/decide, engine/fold, engine/history, engine/loop/timers, engine/snapshots,
    protocol/gateway.
Names: Level, LastValues, IdWindow, Counters.
"""
