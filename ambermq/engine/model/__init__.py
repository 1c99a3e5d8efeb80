"""The values of a virtual host: its state, queues, muxers, attachments and subscriptions.

Rule 1. Values are immutable; each transition returns another value.
Rule 2. A queue holds words of eight bytes, never bodies; only an entry that was acquired once has columns.
Rule 3. No value here is volatile: two equal logs give equal states.

Imports: engine, engine/patterns, engine/settings, snapshot.
Imported by: every other package of engine but patterns and selectors, protocol, tools.
Names: State, Queue, Entry, Muxer, Attachment, Subscription, QueueTemplate, Outcome.
"""
