"""The transactions of one connection: its links to the coordinator, and what its other links do in a transaction.

Rule 1. A transaction belongs to the link that declared it, and ends with it. Every link of the connection may use it.
Rule 2. The engine decides posts and commits. This package reads declares and discharges, and keeps the outcomes that
        receivers say in a transaction.

AMQP 1.0, part 4.

Imports: engine, engine/commands, engine/entries, protocol/amqp10/*, protocol/gateway/consumers,
    protocol/gateway/links, protocol/gateway/nodes.
Imported by: protocol/gateway.
Names: ConnectionTransactions.
"""
