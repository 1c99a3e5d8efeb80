"""The values of a virtual host: its state, queues, muxers, attachments and subscriptions.

Rule 1. Values are immutable; each transition returns another value.
Rule 2. A queue holds words of eight bytes, never bodies; most messages have a word and nothing else.
Rule 3. No value here is volatile: two equal logs give equal states.

Imports: engine, engine/entries, engine/model/queue_parts, engine/patterns, engine/settings, snapshot.
Imported by: every other package of engine but patterns and selectors, protocol, tools.
Names: State, Queue, Muxer, Attachment, Subscription, QueueTemplate.
"""
