"""Links: attach and detach, credit, drain, and deliveries of several frames (transport, 2.6).

Rule 1. A link sends no delivery without credit.
Rule 2. A call on an ended link does nothing, because its owner may learn of the end later.
Rule 3. A link knows its session only by the Protocol in link_session.py.

Imports: protocol/amqp10, protocol/amqp10/framing, protocol/amqp10/message, protocol/amqp10/performatives,
    protocol/amqp10/types.
Imported by: protocol/amqp10/session, protocol/amqp10/connection, protocol/gateway, tools/client.
Names: Link, Sender, Receiver, LinkSession, Resumption.
"""
