"""A blocking AMQP client, and the commands send, receive and bench.

Rule 1. The client uses protocol/amqp10, the same state machines as the broker, and one socket.
Rule 2. The client has one thread, and one function that blocks.
Rule 3. A message counts as accepted only when the broker has answered so.

Imports: log, log/manifest, log/storage, protocol/amqp10/*, protocol/management, tools/terminal.
Imported by: bench, the packages of tools above it.
Names: LinkClient, Publisher, Subscriber, Management, BrokerUrl.
"""
