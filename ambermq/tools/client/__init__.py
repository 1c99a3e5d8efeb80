"""A blocking AMQP client, and the commands send, receive and bench.

Rule 1. The client stands on protocol/amqp10, the same state machines as the broker, and on one socket.
Rule 2. One thread, and one place that waits.
Rule 3. A message counts as accepted when the broker has said so, never sooner.

Imports: log, log/manifest, log/storage, protocol/amqp10/*, protocol/management, tools/terminal.
Imported by: bench, the rooms of tools above it.
Names: LinkClient, Publisher, Subscriber, Management, BrokerUrl.
"""
