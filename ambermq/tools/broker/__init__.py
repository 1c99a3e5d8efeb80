"""`ambermq serve`: the composition root, and brokers as child processes.

Rule 1. serve.py is the one place where log, engine, gateway and server are put together.
Rule 2. The line `ready amqp://HOST:PORT data=DIR` on standard output comes when connections are accepted.
Rule 3. A virtual host whose log cannot be recovered refuses the start.
Rule 4. A compaction that the broker starts is a child process; the broker's stop ends it.

Imports: ambermq, engine/*, log/*, protocol/*, tools/audit, tools/broker/*, tools/client, tools/config,
    tools/terminal.
Imported by: tools, tools/compaction, tools/vhosts.
Names: Broker, serve, ChildBroker, VhostStore, CompactionStarter, offline_engine.
"""
