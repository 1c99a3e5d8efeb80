"""A persistent map: `set`, `delete` and `update` return another map and leave the old one as it was.

It is `immutables.Map`, a hash array mapped trie in C, the one that CPython's contextvars are built on. A library,
because a trie written in Python would cost several times as much a step and would have to earn the same trust.

Rule 1. For the root of a state and for what credit bounds, such as acquired deliveries: hundreds or thousands of
        entries. What can be millions is a `PersistentQueue`.
Rule 2. Many changes at once go through `with map.mutate() as draft: ...; map = draft.finish()`, which copies a node
        once instead of once a change.
Rule 3. The order of iteration is that of hashes, and hashes of str and bytes differ from process to process: what is
        written or decided from a map is sorted first.
"""

from immutables import Map as PersistentMap

__all__ = ["PersistentMap"]
