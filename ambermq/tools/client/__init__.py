"""A blocking AMQP client, and the options of the commands that connect to a broker.

Rule 1. The client uses protocol/amqp10, the same state machines as the broker, and one socket.
Rule 2. The client has one thread, and one function that blocks.
Rule 3. A message counts as accepted only when the broker has answered so.

Imports: log/manifest, log/storage, protocol/amqp10/*, protocol/auth, protocol/auth/sasl, protocol/management,
    tools/terminal.
Imported by: bench, the packages of tools above it.
Names: LinkClient, Management, BrokerUrl.
"""
