"""Links: attach and detach, credit, drain, and deliveries put together or cut (transport, 2.6).

Rule 1. Never a delivery without credit.
Rule 2. Every call on a dead link does nothing, since its owner may hear of the end later than it came.
Rule 3. A link knows of its session what link_session.py says, and no more.

Imports: protocol/amqp10, protocol/amqp10/framing, protocol/amqp10/performatives, protocol/amqp10/types.
Imported by: protocol/amqp10/session, protocol/amqp10/connection, protocol/gateway, tools/client.
Names: Link, Sender, Receiver, LinkSession.
"""
