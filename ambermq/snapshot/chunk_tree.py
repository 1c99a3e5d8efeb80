"""A persistent tree of chunks: packed runs of words in a sequence, with the ends and any place in O(log n).

    chunk  bytes: 1 to 1,024 packed words, plain or compressed
    node   tuple of 1 to 32 chunks, or of 1 to 32 nodes; all chunks are equally deep
    tree   a node, or () without chunks

Rule 1. A tree never changes. A change makes a node for each level of its path; all other nodes are shared.
Rule 2. No two neighbours in a node fit into one, except at the ends. So chunks and nodes are more than half full on
        average, after any removals.
Rule 3. In an ordered tree the words rise. The place of a word is found by the first words of nodes, and no other chunk
        is read. `remove_ordered` is correct in any tree, because it removes only words that it finds; in an unordered
        tree it may miss some.
Rule 4. Recursion is as deep as the tree: 5 levels are 34,000,000,000 words.
Rule 5. The caller compresses what it appends, or not. A removal and an insertion leave a plain chunk, because the next
        one is often in the same chunk. A node with compressed chunks compresses its plain ones when more than 8 are.
Rule 6. Functions return chunks as plain words.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from struct import pack
from typing import Any, Final, TypeAlias

from ambermq.snapshot.compressed_chunk import CompressedChunk, compressed, count_of, recent_words_of, words_of
from ambermq.snapshot.removal import Removal
from ambermq.snapshot.word_chunk import CHUNK_BYTES, CHUNK_WORDS, WORD_BYTES, unpack_words

__all__ = [
    "EMPTY_TREE",
    "Node",
    "append",
    "chunk_above",
    "chunks_of",
    "first_word",
    "insert_ordered",
    "last_word",
    "merged",
    "pop_first",
    "prepend",
    "remove_anywhere",
    "remove_ordered",
]

Node: TypeAlias = tuple[Any, ...]
"""Chunks, or nodes that are one level lower."""

EMPTY_TREE: Final[Node] = ()
FANOUT: Final = 32
_PLAIN_MAX: Final = 8
"""The plain chunks of a node that has compressed ones."""
_SPLICED_SHARE: Final = 16
"""A run is spliced in if it is less than 1/16 of the words that it goes between: one splice costs as much as sorting 16
words."""


def append(tree: Node, chunk: bytes) -> Node:
    """Return the tree with a chunk at its end."""
    parts = _append(tree, chunk)
    return parts[0] if len(parts) == 1 else parts


def _append(node: Node, chunk: bytes) -> tuple[Node, ...]:
    """Return the node with a chunk at its end; if it is full, the node itself and another one with the chunk."""
    last: tuple[Any, ...] = (chunk,)
    if node and type(node[-1]) is tuple:
        last = _append(node[-1], chunk)
        if len(last) == 1:
            return ((*node[:-1], *last),)
        last = last[1:]
    return ((*node, *last),) if len(node) < FANOUT else (node, last)


def prepend(tree: Node, chunk: bytes) -> Node:
    """Return the tree with a chunk at its start."""
    parts = _prepend(tree, chunk)
    return parts[0] if len(parts) == 1 else parts


def _prepend(node: Node, chunk: bytes) -> tuple[Node, ...]:
    """Return the node with a chunk at its start; if it is full, another one with the chunk and the node itself."""
    first: tuple[Any, ...] = (chunk,)
    if node and type(node[0]) is tuple:
        first = _prepend(node[0], chunk)
        if len(first) == 1:
            return ((*first, *node[1:]),)
        first = first[:1]
    return ((*first, *node),) if len(node) < FANOUT else (first, node)


def pop_first(tree: Node) -> tuple[bytes, Node]:
    """Return the first chunk of a tree that has one, and the tree without it."""
    chunk, rest = _pop_first(tree)
    # A peek across the edge of a chunk comes before the pop.
    return recent_words_of(chunk), _lowered(rest)


def _pop_first(node: Node) -> tuple[bytes, Node]:
    first = node[0]
    if type(first) is not tuple:
        return first, node[1:]
    chunk, rest = _pop_first(first)
    return chunk, (rest, *node[1:]) if rest else node[1:]


def chunks_of(tree: Node, *, backward: bool = False) -> Iterator[bytes]:
    """Yield the chunks from the first to the last one, or backward."""
    pending: list[Any] = [tree]
    while pending:
        item = pending.pop()
        if type(item) is tuple:
            pending.extend(item if backward else item[::-1])
        else:
            yield words_of(item)


def chunk_above(tree: Node, word: int) -> bytes:
    """Return the first chunk of an ordered tree that has a word above `word`; no bytes if there is none."""
    if not tree or last_word(tree) <= word:
        return b""
    item: Any = tree
    while type(item) is tuple:
        item = item[bisect_right(item, word, key=last_word)]
    return recent_words_of(item)


def first_word(item: Any) -> int:
    """Return the first word of a chunk or node."""
    while type(item) is tuple:
        item = item[0]
    return int.from_bytes(item[:WORD_BYTES], "little")


def last_word(item: Any) -> int:
    """Return the last word of a chunk or node."""
    while type(item) is tuple:
        item = item[-1]
    return int.from_bytes(item[-WORD_BYTES:], "little")


def remove_ordered(tree: Node, removal: Removal) -> Node:
    """Return the tree without the wanted words, each searched where an ordered tree has it."""
    if not tree or not removal.missing:
        return tree
    rest = _remove_ordered(tree, removal, removal.wanted)
    return tree if rest is tree else _lowered(rest)


def _remove_ordered(node: Node, removal: Removal, wanted: list[int]) -> Node:
    """Return the node without the rising `wanted` words; the same node if it has none of them."""
    changed: dict[int, Any] = {}
    start = bisect_left(wanted, first_word(node))
    while start < len(wanted):
        index = bisect_right(node, wanted[start], key=first_word) - 1
        is_last = index + 1 == len(node)
        end = len(wanted) if is_last else bisect_left(wanted, first_word(node[index + 1]), start)
        child, share = node[index], wanted[start:end]
        rest = _remove_ordered(child, removal, share) if type(child) is tuple else removal.remove(child, share)
        if rest is not child:
            changed[index] = rest
        start = end
    return _with_children(node, changed) if changed else node


def remove_anywhere(tree: Node, removal: Removal, remove: Callable[[bytes], bytes]) -> Node:
    """Return the tree without the words that `remove` removes from its chunks; the same tree if there are none."""
    rest = _remove_anywhere(tree, removal, remove) if removal.missing else tree
    return tree if rest is tree else _lowered(rest)


def _remove_anywhere(node: Node, removal: Removal, remove: Callable[[bytes], bytes]) -> Node:
    changed: dict[int, Any] = {}
    for index, child in enumerate(node):
        if not removal.missing:
            break
        rest = _remove_anywhere(child, removal, remove) if type(child) is tuple else remove(child)
        if rest is not child:
            changed[index] = rest
    return _with_children(node, changed) if changed else node


def insert_ordered(tree: Node, words: list[int]) -> Node:
    """Return an ordered tree that has chunks with rising `words` inserted."""
    parts = _insert_ordered(tree, words)
    while len(parts) > 1:
        parts = _nodes_of(parts)
    return parts[0]


def _insert_ordered(node: Node, words: list[int]) -> list[Node]:
    """Return the node with words inserted, cut into nodes of the same level if it is too long for one."""
    children: list[Any] = []
    taken = start = 0
    while start < len(words):
        index = max(bisect_right(node, words[start], key=first_word) - 1, 0)
        is_last = index + 1 == len(node)
        end = len(words) if is_last else bisect_left(words, first_word(node[index + 1]), start)
        children += node[taken:index]
        child, share = node[index], words[start:end]
        is_node = type(child) is tuple
        children += _insert_ordered(child, share) if is_node else _chunks_of_run(merged(words_of(child), share))
        taken, start = index + 1, end
    return _nodes_of(_compacted([*children, *node[taken:]], node))


def _nodes_of(children: list[Any]) -> list[Node]:
    """Return nodes of at most FANOUT children each, of equal length within one."""
    count = -(-len(children) // FANOUT)
    bounds = [len(children) * index // count for index in range(count + 1)]
    return [tuple(children[start:end]) for start, end in pairwise(bounds)]


def _compacted(children: list[Any], before: Node) -> list[Any]:
    """Return changed children of a node; if it had compressed chunks, with at most `_PLAIN_MAX` plain ones."""
    if len(children) <= _PLAIN_MAX or CompressedChunk not in map(type, before):
        return children
    plain = sum([type(child) is bytes for child in children])
    return [compressed(child) for child in children] if plain > _PLAIN_MAX else children


def _chunks_of_run(words: bytes) -> list[bytes]:
    """Return packed words as chunks, of equal length within one word."""
    count = -(-len(words) // CHUNK_BYTES)
    bounds = [len(words) // WORD_BYTES * index // count * WORD_BYTES for index in range(count + 1)]
    return [words[start:end] for start, end in pairwise(bounds)]


def merged(words: bytes, run: list[int]) -> bytes:
    """Return ordered packed words with a rising run merged in."""
    if len(run) * _SPLICED_SHARE * WORD_BYTES >= len(words):
        # The sort merges them in linear time.
        both = sorted([*unpack_words(words), *run])
        return pack(f"<{len(both)}Q", *both)
    numbers, pieces, start = memoryview(words).cast("Q"), list[bytes](), 0
    for word in run:
        end = bisect_left(numbers, word, start)
        pieces += (words[start * WORD_BYTES : end * WORD_BYTES], word.to_bytes(WORD_BYTES, "little"))
        start = end
    pieces.append(words[start * WORD_BYTES :])
    return b"".join(pieces)


def _with_children(node: Node, changed: dict[int, Any]) -> Node:
    """Return a node with some children replaced, the empty ones left out, and neighbours that fit joined."""
    kept: list[Any] = []
    for index, child in enumerate(node):
        rest = changed.get(index, child)
        if rest and kept:
            kept[-1:] = _joined(kept[-1], rest)
        elif rest:
            kept.append(rest)
    return tuple(_compacted(kept, node))


def _joined(left: Any, right: Any) -> tuple[Any, ...]:
    """Return two neighbours as one if they fit, else both."""
    if type(left) is not tuple:
        is_short = count_of(left) + count_of(right) <= CHUNK_WORDS
        return (words_of(left) + words_of(right),) if is_short else (left, right)
    if len(left) + len(right) > FANOUT:
        return left, right
    children = [*left[:-1], *_joined(left[-1], right[0]), *right[1:]]
    return (tuple(_compacted(children, left + right)),)


def _lowered(tree: Node) -> Node:
    """Return a tree without levels of only one node."""
    while len(tree) == 1 and type(tree[0]) is tuple:
        tree = tree[0]
    return tree
