"""AMQP 1.0: codec, frames, sans-IO state machines, the gateway to the engine, and the server.

Rule 1. Layers: server, gateway, management, auth, resources, server_limits, amqp10. Imports go down this list,
        type-only ones included.
Rule 2. A lower package that needs a higher one owns a `typing.Protocol` for what it needs.
Rule 3. Only server/ knows the event loop, sockets and the time of day.

Imports: protocol/amqp10.
Imported by: tools.
Names: ServerLimits.
"""
