"""A persistent map: `set`, `delete` and `update` return a new map and leave the old one unchanged.

It is `immutables.Map`, a hash array mapped trie in C, the one on which CPython's contextvars are built. A library,
because a trie in Python would cost several times as much a step and would need the same amount of testing.

Rule 1. Use it for the root of a state and for tables that credit limits, such as acquired deliveries: hundreds or
        thousands of entries. A table that may have millions is a `PersistentQueue`.
Rule 2. Many changes at once use `with map.mutate() as draft: ...; map = draft.finish()`, which copies a node once
        instead of once a change.
Rule 3. The order of iteration is that of hashes, and hashes of str and bytes differ in each process. So the entries are
        sorted before they are written or used for a decision.
"""

from immutables import Map as PersistentMap

__all__ = ["PersistentMap"]
