"""AMQP 1.0 without I/O: bytes in, events and bytes out, for both roles.

Rule 1. Pure: no clock, no socket, no randomness, and no knowledge of the broker. `now` is an argument.
Rule 2. Bytes of a peer raise only AmqpError, and no memory is allocated for a size that they only claim.
Rule 3. A peer's fault ends the scope that it belongs to: link, session or connection. A fault of ours is a LocalError.
Rule 4. State machines are tables, (state, input) -> state; a missing entry is an error.

Imports: protocol/amqp10/performatives, protocol/amqp10/types.
Imported by: every other package of protocol, tools.
Names: Event, ConnectionLimits, MemoryBudget, AmqpError, LinkEndpoint, SessionEndpoint.
"""
