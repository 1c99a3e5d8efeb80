"""Transactions with proton: a connection that takes a step in each, as proton's own examples do."""

from collections.abc import Callable
from typing import Any

from proton import Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container

__all__ = ["Session", "Step", "posting", "taking"]

Step = Callable[["Session"], None]


class Session(MessagingHandler, TransactionHandler):  # type: ignore[misc]
    """One connection that makes a transaction for each step; a step ends it, as proton's own examples do."""

    def __init__(self, url: str, queue: str, steps: list[Step], *, takes: int = 0) -> None:
        super().__init__(prefetch=0, auto_accept=False)
        self.url, self.queue, self.steps, self.takes = url, queue, list(steps), takes
        self.transaction: Any = None
        self.got: list[Any] = []
        self.said: list[str] = []

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.connection = event.container.connect(self.url, reconnect=False)
        self.sender = event.container.create_sender(self.connection, self.queue)
        self.receiver = event.container.create_receiver(self.connection, self.queue)
        self.is_begun = False

    def on_sendable(self, event: Any) -> None:
        if not self.is_begun and event.sender == self.sender:
            self.is_begun = True
            self.receiver.flow(self.takes)
            self.next()

    def next(self) -> None:
        """Declare the next transaction, or close."""
        if self.steps:
            self.container.declare_transaction(self.connection, handler=self)
        else:
            self.connection.close()

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        self.work()

    def on_message(self, event: Any) -> None:
        self.got.append((event.message.body, event.message.delivery_count, event.delivery))
        self.work()

    def work(self) -> None:
        """Start the next step if its transaction is there, and the messages that it needs."""
        if self.transaction is not None and len(self.got) >= self.takes:
            transaction, step = self.transaction, self.steps.pop(0)
            self.transaction = None
            self.current = transaction
            step(self)

    def send(self, *bodies: str) -> None:
        """Send in the transaction."""
        for body in bodies:
            self.current.send(self.sender, Message(body, durable=True))

    def accept_all(self) -> None:
        """Accept in the transaction."""
        for _, _, delivery in self.got:
            self.current.accept(delivery)

    def on_transaction_committed(self, _event: Any) -> None:
        self.said.append("committed")
        self.next()

    def on_transaction_aborted(self, _event: Any) -> None:
        self.said.append("aborted")
        self.next()

    def on_transaction_commit_failed(self, _event: Any) -> None:
        self.said.append("failed")
        self.next()

    def run(self) -> list[str]:
        """Run until the connection is closed; returns how the transactions ended."""
        Container(self).run()
        return self.said


def posting(*bodies: str, commits: bool) -> Step:
    """Send messages, and end the transaction."""

    def step(session: Session) -> None:
        session.send(*bodies)
        (session.current.commit if commits else session.current.abort)()

    return step


def taking(*, commits: bool) -> Step:
    """Accept what has come, and end the transaction."""

    def step(session: Session) -> None:
        session.accept_all()
        (session.current.commit if commits else session.current.abort)()

    return step
