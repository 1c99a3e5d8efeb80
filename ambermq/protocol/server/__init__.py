"""The server: one event loop, its listeners, and the virtual hosts that share them.

Rule 1. No handler blocks: it parses input and queues commands; the kernel and threads wait for the disk.
Rule 2. A connection is written once a tick. One whose peer does not read gets no deliveries.
Rule 3. Only the server knows all its parts: listeners accept, connections carry bytes, virtual hosts run engines.
Rule 4. A log failure ends the server; after it no delivery is settled.

Imports: engine, engine/loop, log/manifest, log/storage, protocol, protocol/*.
Imported by: tools/broker, tools/doctor.
Names: Server, Clock, LimitedLog.
"""
