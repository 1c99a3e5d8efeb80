"""Connections: headers, SASL, open and close, channels, heartbeats (transport, 2.2 to 2.4).

Rule 1. `receive` never raises: a fault ends its scope, and the event of that end carries the error.
Rule 2. The server decides about two events, Authenticating and Opened; later input is kept unread until then, bounded.
Rule 3. ConnectionClosed is the last event.

Imports: protocol/amqp10/*.
Imported by: protocol/gateway, protocol/server/connections, tools/broker, tools/client.
Names: Connection, ConnectionRole, SaslServer, SaslClient.
"""
