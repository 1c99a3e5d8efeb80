"""Connections: headers, SASL, open and close, channels, heartbeats (transport, 2.2 to 2.4).

Rule 1. `receive` never raises: a fault ends its scope, and the event of that end tells it.
Rule 2. A server answers two questions, Authenticating and Opened; input behind them waits unread, and is bounded.
Rule 3. Nothing is appended after ConnectionClosed.

Imports: protocol/amqp10/*.
Imported by: protocol/gateway, protocol/server, tools/broker, tools/client.
Names: Connection, ConnectionRole, SaslServer, SaslClient.
"""
