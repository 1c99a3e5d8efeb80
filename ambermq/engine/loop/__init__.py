"""The engine over a real log: ticks, effects that wait for the disk, and the start from a log.

Rule 1. The state is at the end of what was decided; the log's end follows at the write, the durable end at the sync.
Rule 2. No effect leaves before its batch was written, and effects leave in the order of ticks.
Rule 3. One thread calls everything, and the time is an argument.
Rule 4. A start folds the newest snapshot that can be believed and the batches behind it.

Imports: engine/*, log/*.
Imported by: protocol/server, tools.
Names: DurableLoop, CommandQueue, PendingEffects, EffectRelease, recover.
"""
