"""Link recovery at the gateway: how links keep what is unsettled, for how long, and what a resumed link sends again.

Rule 1. The engine keeps deliveries and delivery-tags. This package reads termini and unsettled maps, and knows which
        suspended links end with a session or with the connection.
Rule 2. Nothing here outlives its connection.

AMQP 1.0, part 2, section 2.6.13; part 3, sections 3.5.3 to 3.5.6.

Imports: engine/commands, engine/entries, engine/model, protocol/amqp10, protocol/amqp10/connection,
    protocol/amqp10/link, protocol/amqp10/performatives, protocol/amqp10/types.
Imported by: protocol/gateway, protocol/gateway/consumers, protocol/gateway/links.
Names: LinkKeeping, LinkScopes, ResumedDeliveries, SuspendedMemory.
"""
