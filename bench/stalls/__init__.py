"""The longest steps between two turns of the event loop that one peer can cause.

`python -m bench.stalls` measures a whole broker: each request that management or a link can make, on a backlog.
`scan_steps` measures parts:

Rule 1. Each measure builds its backlog in memory or by an engine without sockets, in the same process.
Rule 2. A measure returns the CPU milliseconds of its longest step as `ms`.
Rule 3. A measure needs nothing that is new: it runs in an older checkout too.

Imports: bench, bench/brokers, ambermq/*.
Imported by: bench/backlogs; run as `python -m bench.stalls.scan_steps`.
Names: MEASURES, longest_ms.
"""
