"""Sources that remove no message: browsers of a queue, and the events of the log.

Rule 1. A turn sends a bounded number of messages and bytes, for all such links together.
Rule 2. A source sends nothing before the moment that it shows is durable.
Rule 3. A browser shows one immutable queue; browsing changes nothing and writes no event.

Imports: engine, engine/commands, engine/entries, engine/events, engine/history, engine/model, engine/records,
    engine/selectors, protocol/amqp10/*, protocol/gateway/consumers, protocol/gateway/large, protocol/gateway/links.
Imported by: protocol/gateway.
Names: SourceScheduler, QueueBrowser, EventSource, Source.
"""
