"""AMQP 1.0 without I/O: bytes in, events and bytes out, for both roles.

Rule 1. Pure: no clock, no socket, no chance, and nothing of the broker. `now` is an argument.
Rule 2. Bytes of a peer never raise anything but an AmqpError, and nothing is allocated for a size that they claim.
Rule 3. A peer's fault ends the scope that it belongs to: link, session or connection. Our own is a LocalError.
Rule 4. State machines are tables, (state, input) -> state; what is absent is an error.

Imports: protocol/amqp10/performatives.
Imported by: every other room of protocol, tools.
Names: Event, ConnectionLimits, AmqpError, LinkEndpoint, SessionEndpoint.
"""
