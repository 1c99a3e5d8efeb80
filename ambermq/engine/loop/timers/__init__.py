"""The timers of the loop: volatile, built again at a start, and by elapsed time.

Rule 1. A timer says where to look. The state, or what the loop has noted, says whether its time has come.
Rule 2. The work of a tick for timers is bounded. What is left is due in the next tick.

Imports: engine/dispatch, engine/entries, engine/loop, engine/model, engine/model/queue_parts, snapshot.
Imported by: engine/loop.
Names: ExpiryTimers, DueTimers, UnusedQueues, RateTimers, TimerHeap.
"""
