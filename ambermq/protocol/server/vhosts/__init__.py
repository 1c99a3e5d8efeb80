"""The virtual hosts of a server: what drives each, and how they are created, reset and deleted.

Rule 1. Virtual hosts share nothing but the event loop: each has its own log, engine, gateway and timer.
Rule 2. A virtual host knows its server and its connections only by the Protocols in runner_server.py.
Rule 3. What waits for the disk runs in another thread: the other virtual hosts are served meanwhile.

Imports: engine, engine/commands, engine/history, engine/loop, engine/model, log, log/index, log/manifest, protocol,
    protocol/*, protocol/server.
Imported by: protocol/server, protocol/server/connections, tools/broker.
Names: VhostRunner, VhostLifecycle, VhostServices, RunnerServer, LifecycleServer.
"""
