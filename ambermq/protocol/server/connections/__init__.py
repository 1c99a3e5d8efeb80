"""The accepted connections of a server: their bytes, their number, their deadlines, and the memory that they hold.

Rule 1. A connection costs what its peer has proved: strangers have fewer places and less time.
Rule 2. What a peer can hold back, keep waiting or make the broker store has a limit; at the limit the peer is dropped.
Rule 3. A connection knows its server by the Protocol in transport_server.py, and virtual hosts know no connection.

Imports: engine/loop, protocol, protocol/amqp10, protocol/amqp10/*, protocol/auth, protocol/gateway,
    protocol/gateway/links, protocol/resources, protocol/server, protocol/server/listeners, protocol/server/vhosts.
Imported by: protocol/server.
Names: ConnectionTransport, Admission, DeadlineSweep, PeerDeadlines, MemoryGuard, TransportServer.
"""
