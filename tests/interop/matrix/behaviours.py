"""The rows of the matrix: the behaviours that each client shows.

A driver gets these names. It shows each behaviour against a broker of its own, on nodes named for the behaviour.
"""

from typing import Final, NamedTuple

__all__ = ["BEHAVIOURS", "RECONNECT", "Behaviour"]


class Behaviour(NamedTuple):
    """One row."""

    name: str
    meaning: str
    """The condition for `passed`, for the page."""


RECONNECT: Final = "reconnect"
"""The only behaviour that kills the broker and starts it again, when the driver asks for it."""

BEHAVIOURS: Final = (
    Behaviour("send", "the broker accepts each of ten durable messages"),
    Behaviour("receive", "messages arrive in order, with unchanged bodies, ids, subjects and application properties"),
    Behaviour("accepted", "an accepted message is gone from the queue"),
    Behaviour("rejected", "a rejected message is gone from the queue, and the next one arrives"),
    Behaviour("released", "a released message arrives again, and does not count as delivered"),
    Behaviour("modified", "a message modified with delivery-failed arrives again, with delivery-count 1"),
    Behaviour("lost-link", "messages that a closed link or connection did not settle arrive again on another one"),
    Behaviour("browse", "a source with distribution-mode copy shows all messages, and all stay on the queue"),
    Behaviour("selector", "a receiver with a JMS selector gets the messages that match, another one the rest"),
    Behaviour("temporary-queue", "a dynamic source has an address; messages of another connection to it arrive"),
    Behaviour("temporary-topic", "two subscribers of a dynamic topic each get the messages sent there"),
    Behaviour("topic", "two subscribers of a topic each get the messages sent there after they subscribe"),
    Behaviour("durable-subscription", "messages sent while the subscriber is away arrive when it returns"),
    Behaviour("shared-subscription", "two receivers of one subscription share its messages: each message arrives once"),
    Behaviour("anonymous-relay", "a sender without a target reaches two queues, by the `to` of each message"),
    Behaviour("credit", "with credit for three of ten messages three arrive, with more credit the rest"),
    Behaviour("drain", "a drain brings the available messages, and ends when there are no more"),
    Behaviour("transaction", "a commit shows its messages and ends what was accepted in it; a rollback does neither"),
    Behaviour("priority", "ten messages of the priorities 0 to 9 arrive with the highest priority first"),
    Behaviour("expiry", "a message whose ttl is over does not arrive; the next one does"),
    Behaviour("delivery-delay", "a message with a delivery delay arrives after it; one sent later arrives before it"),
    Behaviour(
        "groups", "a group goes to one of two receivers, in order; after its last message it may go to the other"
    ),
    Behaviour("large-message", "a message of 3 MiB, of many frames, arrives unchanged"),
    Behaviour(RECONNECT, "the broker is killed and starts again; accepted messages are there, the client continues"),
)
"""In the order of the run and of the page."""
