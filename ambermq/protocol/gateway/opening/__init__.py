"""The opening of a connection: its login, the checks of its open, and its place among those of its container and user.

Rule: what is counted for a connection is counted out at its end, once.

AMQP 1.0, part 2, section 2.4; part 5, section 5.3; AMQP Connection Uniqueness.

Imports: protocol, protocol/amqp10, protocol/amqp10/connection, protocol/amqp10/performatives, protocol/amqp10/types,
    protocol/auth, protocol/gateway/links, protocol/gateway/nodes.
Imported by: protocol/gateway, protocol/server.
Names: ConnectionLogin, ConnectionOpening, ContainerIds, UserConnections.
"""
