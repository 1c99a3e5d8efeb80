"""Sessions: delivery-ids, windows, unsettled deliveries, and the links that share them (transport, 2.5).

Rule 1. The cost of a range in a peer's frame depends on the deliveries that exist in it, not on its size.
Rule 2. Settlements of one tick leave together as ranges.
Rule 3. A session knows its connection only by session_connection.py, and its parts know it by parent_session.py.

Imports: protocol/amqp10, protocol/amqp10/framing, protocol/amqp10/link, protocol/amqp10/performatives,
    protocol/amqp10/types.
Imported by: protocol/amqp10/connection, tools/config.
Names: Session, DeliveryRing, FlowWindows, SessionConnection.
"""
