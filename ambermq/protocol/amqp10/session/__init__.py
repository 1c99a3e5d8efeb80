"""Sessions: delivery-ids, windows, unsettled deliveries, and the links that share them (transport, 2.5).

Rule 1. A range that a peer claims costs what is held of it, never what is claimed.
Rule 2. Settlements of one tick leave together as ranges.
Rule 3. A session knows of its connection what session_connection.py says; its parts know parent_session.py.

Imports: protocol/amqp10, protocol/amqp10/framing, protocol/amqp10/link, protocol/amqp10/performatives,
    protocol/amqp10/types.
Imported by: protocol/amqp10/connection, tools/config.
Names: Session, DeliveryRing, FlowWindows, SessionConnection.
"""
