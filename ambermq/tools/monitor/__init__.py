"""The commands that watch a running broker: status, top, check, connections, sessions and links.

Rule 1. They read over `$management`, so they need no HTTP listener, and work on another machine.
Rule 2. They change nothing, except that `close` ends what it names.
Rule 3. A rate is the difference of two readings. The time between them is of the broker's own clock, where it has one.

Imports: engine/history, tools/client, tools/terminal.
Imported by: tools.
Names: status, top, check, connections, sessions, links, BrokerReading.
"""
