"""The messages of a queue at the `$management` node: found, moved, copied, redriven, removed.

Imports: engine, engine/commands, engine/entries, engine/selectors, log, protocol/amqp10,
    protocol/amqp10/message, protocol/amqp10/types, protocol/management.
Imported by: protocol/management.
Names: MESSAGE_OPERATIONS.
"""
