"""The HTTP listener of a broker: its sockets, and health and metrics during recovery and afterwards.

Rule 1. The sockets are bound before the data directory is touched; the listener is imported only when it is wanted.
Rule 2. It serves the loopback interface alone, or has TLS and logins: what it shows has the names of queues.

Imports: engine/*, log/*, protocol/*, tools/config, tools/terminal.
Imported by: tools/broker.
Names: HttpListener, HttpTerms, http_sockets.
"""
