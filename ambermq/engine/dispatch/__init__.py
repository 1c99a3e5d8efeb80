"""Ready messages meet consumers with credit: who is served, in which turn.

Rule 1. Demand is volatile and starts empty; what it chooses enters history as Acquired events.
Rule 2. What came back is served before what is new, each in the order of entries.
Rule 3. Turns are exact, and a consumer that excludes an entry never blocks what stands behind it.
Rule 4. Bodies are read through the log that is given: no file is opened here.

Imports: engine, engine/events, engine/fold, engine/model, engine/routing, engine/selectors, log, log/format,
    log/read, log/write, snapshot.
Imported by: engine/loop.
Names: dispatch, Demand, Want, SelectorScan, MessagePeek.
"""
