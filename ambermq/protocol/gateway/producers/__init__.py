"""The links on which peers send: messages become Publish commands, their results dispositions.

Rule 1. A run of messages like the last decoded one is published without decoding and without a call for each message.
Rule 2. Credit is what paces a sender. The broker never stops reading to slow one link down.
Rule 3. A producer's link knows its connection only by the Protocol in protocol/gateway/links/link_peer.py.

Imports: engine, engine/commands, engine/decide, engine/entries, protocol, protocol/amqp10/*, protocol/auth,
    protocol/gateway, protocol/gateway/large, protocol/gateway/links.
Imported by: protocol/gateway, protocol/server/vhosts.
Names: ProducerLink, ProducerCredit, PublishReader, PublishBatch, KeptTags, RelayGuard.
"""
