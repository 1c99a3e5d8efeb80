"""The open transactions of a virtual host, in the order in which they were begun."""

from typing import Final, final

from ambermq.engine.commands import TIMEOUT, Post, Transaction
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry_word import WORD_BYTES, size_code, size_of
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.transactions.reservations import Reservations
from ambermq.log.format.record import RECORD

__all__ = ["OpenTransactions", "post_size"]

_NEVER_US: Final = 1 << 62
_BATCH_PART: Final = 4
"""The heads of a transaction's messages take at most this part of a batch."""


@final
class OpenTransactions:
    """The open transactions, with what they hold. Times are microseconds of elapsed time."""

    __slots__ = ("_batch_part", "_config", "_kept", "_size", "begun", "kept")

    def __init__(self, config: EngineConfig, *, batch_bytes_max: int) -> None:
        self._config = config
        self._batch_part = batch_bytes_max // _BATCH_PART
        self.begun: dict[Transaction, int] = {}
        """When each open transaction was begun, in that order."""
        self._kept = Reservations()
        self.kept: Reservations | None = None
        """The room that they keep; None if they keep none. An attribute, since each command asks for it."""
        self._size = 0
        """The bytes of the messages of all."""

    @property
    def count(self) -> int:
        """The number of open transactions."""
        return len(self.begun)

    @property
    def size(self) -> int:
        """The bytes of the messages that they hold."""
        return self._size

    @property
    def next_us(self) -> int:
        """When the oldest one is too old."""
        oldest_us = next(iter(self.begun.values()), None)
        return _NEVER_US if oldest_us is None else oldest_us + 1000 * self._config.transaction_ms_max

    def begin(self, transaction: Transaction, now_us: int) -> None:
        """Begin a transaction."""
        self.begun[transaction] = now_us

    def add(self, transaction: Transaction, post: Post) -> str:
        """Add a post to a transaction; return why it cannot be, empty if it is added."""
        messages, config = post.messages, self._config
        if transaction not in self.begun:
            return f"the transaction was open for more than {config.transaction_ms_max} ms (transaction_ms_max)"
        count = len(messages.bodies)
        entries = transaction.count + count * len(post.queues)
        held_bytes = messages.size if messages.upload is None else messages.size - messages.upload.size
        size = transaction.size + held_bytes
        if entries > config.transaction_messages_max:
            return f"at most {config.transaction_messages_max} messages in a transaction (transaction_messages_max)"
        head_bytes = transaction.head_bytes + _head_bytes(post, config.chunk_bytes)
        if head_bytes > self._batch_part:
            return f"at most {self._batch_part} bytes of heads of messages in a transaction"
        if size > config.transaction_bytes_max:
            return f"at most {config.transaction_bytes_max} bytes in a transaction (transaction_bytes_max)"
        if self._size + held_bytes > config.transactions_bytes_max:
            limit = config.transactions_bytes_max
            return f"the open transactions hold {self._size} of {limit} bytes (transactions_bytes_max)"
        # Views would keep the whole chunks of their reads, which may be much larger, until the commit.
        messages.bodies = [bytes(body) for body in messages.bodies]
        self._kept.add(post.reserving, count, post_size(post))
        self.kept = self._kept or None
        if not transaction.posts or not transaction.posts[-1].join(post):
            transaction.posts.append(post)
        transaction.count, transaction.size, transaction.head_bytes = entries, size, head_bytes
        self._size += held_bytes
        return ""

    def end(self, transaction: Transaction) -> None:
        """Forget a transaction and give back its room."""
        if self.begun.pop(transaction, None) is None:
            return
        for post in transaction.posts:
            self._kept.remove(post.reserving, len(post.messages.bodies), post_size(post))
        self.kept = self._kept or None
        self._size -= transaction.size
        # A client may never discharge it.
        transaction.posts, transaction.retirements = [], {}
        transaction.count = transaction.size = transaction.head_bytes = transaction.outcome_bytes = 0

    def take_late(self, now_us: int) -> Transaction | None:
        """Return the oldest transaction if it is too old, and mark it as ended; None if it is not."""
        if now_us < self.next_us:
            return None
        transaction = next(iter(self.begun))
        transaction.end = TIMEOUT
        return transaction


def _head_bytes(post: Post, chunk_bytes: int) -> int:
    """Return the bytes of the records of a post without the messages, at most.

    Each message names the queues and its pieces. Time to live, due time, group, priority and keys have a record each.
    """
    messages, queues_bytes = post.messages, WORD_BYTES * len(post.queues)
    size = sum([RECORD.size + queues_bytes + WORD_BYTES * (2 + size // chunk_bytes) for size in messages.sizes])
    if messages.ttl_ms:
        size += RECORD.size + queues_bytes + WORD_BYTES * (1 + len(messages.lives_ms or ()))
    if messages.time_ms or messages.delay_ms:
        size += RECORD.size + queues_bytes + WORD_BYTES * len(messages.bodies) * (2 if messages.times_ms else 1)
    if messages.priority != PRIORITY_DEFAULT:
        size += RECORD.size + queues_bytes
    for queues, keys in post.keys:
        size += RECORD.size + WORD_BYTES * len(queues) + len(keys)
    if messages.groups:
        size += RECORD.size + queues_bytes + WORD_BYTES * len(messages.bodies)
    return size


def post_size(post: Post) -> int:
    """Return the bytes that the messages of a post account for on each queue."""
    return sum([size_of(size_code(size)) for size in post.messages.sizes])
