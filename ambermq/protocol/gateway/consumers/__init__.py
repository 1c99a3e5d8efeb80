"""The links on which peers receive: effects become deliveries, the peer's outcomes Settle commands.

Rule 1. The engine gets no more credit than link, window and free output allow.
Rule 2. A run of deliveries that the link can take at once passes without a call for each delivery.
Rule 3. A consumer's link knows its connection only by the Protocol in protocol/gateway/links/link_peer.py.

Imports: engine, engine/commands, engine/entries, protocol/amqp10/*, protocol/gateway, protocol/gateway/large,
    protocol/gateway/links, protocol/gateway/recovery.
Imported by: protocol/gateway, protocol/gateway/sources, protocol/gateway/transactions.
Names: ConsumerLink, Backlog, EarlyDeliveries, LinkResumption, ExpiredDeliveries, RetiredDeliveries.
"""
