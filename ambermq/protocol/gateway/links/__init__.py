"""One producer or one consumer each: a link, and what the engine knows it by.

Rule 1. The engine is told no more credit than link, window and free output can take.
Rule 2. A message goes out byte for byte as it came; only a redelivered one gets a new header.
Rule 3. What a peer asks for otherwise than we can is adjusted and reported, or refused.
Rule 4. A link knows of its connection what link_peer.py says, and no more.

Imports: engine, engine/events, engine/model, engine/records, engine/selectors, protocol, protocol/amqp10/*,
    protocol/gateway.
Imported by: protocol/gateway, protocol/server, tools.
Names: ProducerLink, ConsumerLink, LinkPeer, RoutingFields, producing_terms, consuming_terms.
"""
