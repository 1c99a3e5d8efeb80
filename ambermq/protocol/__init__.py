"""AMQP 1.0: codec, frames, sans-IO state machines, the gateway to the engine, and the server.

Rule 1. Floors: server, gateway, management, server_limits, amqp10. Imports go down this list, type-only ones included.
Rule 2. A lower room that needs a higher one owns a Protocol that says what it needs.
Rule 3. Only server/ knows the event loop, sockets and the time of day.

Imports: protocol/amqp10.
Imported by: tools.
Names: ServerLimits.
"""
