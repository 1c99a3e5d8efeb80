"""The links of producers and consumers, each with its id in the engine.

Rule 1. The engine gets no more credit than link, window and free output allow.
Rule 2. A message is sent byte for byte as it arrived; only a redelivered one gets a new header.
Rule 3. If the broker cannot do what a peer requests, the attach reply reports what it does, or it refuses the link.
Rule 4. A link knows its connection only by the Protocol in link_peer.py.

Imports: engine, engine/commands, engine/decide, engine/dispatch, engine/entries, engine/events, engine/model,
    engine/records, engine/selectors, protocol, protocol/amqp10/*, protocol/auth, protocol/gateway,
    protocol/gateway/large, protocol/gateway/recovery.
Imported by: protocol/gateway, protocol/server, tools.
Names: RelayGuard, ProducerLink, ConsumerLink, LinkPeer, RoutingFields, producing_terms, consuming_terms.
"""
