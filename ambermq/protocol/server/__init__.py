"""The server: one event loop, its listeners, and the virtual hosts that share them.

Rule 1. No handler blocks: it parses input and queues commands; the kernel and threads wait for the disk.
Rule 2. A connection is written once a tick. One whose peer does not read gets no deliveries.
Rule 3. While too much of a log is unsynced no socket of its virtual host is read.
Rule 4. A log failure ends the server; after it no delivery is settled.

Imports: engine, engine/commands, engine/history, engine/loop, engine/model, log, log/index, log/manifest, log/storage,
    protocol/*.
Imported by: tools/broker.
Names: Server, VhostRunner, VhostLifecycle, ConnectionTransport.
"""
