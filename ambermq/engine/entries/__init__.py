"""What a queue knows of one message: its word, its columns, the outcomes of its deliveries, the reasons of its end.

Rule 1. Values are immutable, and equal after every replay.
Rule 2. Most messages have a word of eight bytes and nothing else.

Imports: snapshot.
Imported by: every other package of engine but address, patterns, selectors and settings, protocol, tools.
Names: Entry, Outcome, OutcomeKind, DiscardReason.
"""
