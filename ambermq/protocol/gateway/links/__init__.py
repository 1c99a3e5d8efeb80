"""What the links of producers and consumers share: the terms of an attach, nodes, outcomes, and a link's peer.

Rule 1. If the broker cannot do what a peer requests, the attach reply reports what it does, or it refuses the link.
Rule 2. A message is sent byte for byte as it arrived; only a redelivered one gets a new header.
Rule 3. A link knows its connection only by the Protocol in link_peer.py.

Imports: engine, engine/commands, engine/decide, engine/dispatch, engine/entries, engine/events, engine/model,
    engine/records, engine/selectors, protocol, protocol/amqp10/*, protocol/auth, protocol/gateway,
    protocol/gateway/large, protocol/gateway/recovery.
Imported by: protocol/gateway, protocol/gateway/consumers, protocol/gateway/producers, protocol/server, tools.
Names: LinkPeer, RoutingFields, producing_terms, consuming_terms, redelivered.
"""
