"""The engine with its log: ticks, effects that wait for the disk, and recovery.

Rule 1. The state includes every decision; the log's end follows at the write, the durable end at the sync.
Rule 2. No effect leaves before its batch was written, and effects leave in the order of ticks.
Rule 3. One thread calls everything, and the time is an argument.
Rule 4. A start loads the newest valid snapshot and folds the later batches.

Imports: engine/*, log/*, snapshot.
Imported by: protocol/server, tools.
Names: DurableLoop, LoggedState, CommandQueue, PendingEffects, EffectRelease, recover.
"""
