"""The requests of `$management`, type by type: requests become commands, values become attributes.

Rule 1. Pure, and independent of the transport: it knows no link and no connection.
Rule 2. A request that cannot be done is Refused, with an AMQP condition and one sentence.
Rule 3. A page of a listing is bounded in rows and in bytes.
Rule 4. Types, operations and attributes are public: docs/management.md lists them, tests/surface holds them.

Imports: engine, engine/commands, engine/decide, engine/model, engine/routing, engine/settings, protocol/amqp10,
    protocol/amqp10/message, protocol/amqp10/performatives, protocol/amqp10/types, protocol/management/access,
    protocol/management/administration, protocol/management/messages, protocol/management/peers, snapshot.
Imported by: protocol/gateway, protocol/server, tools.
Names: operation_of, describe, VhostPort, SortedIds.
"""
