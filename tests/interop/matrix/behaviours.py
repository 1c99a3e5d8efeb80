"""The rows of the matrix: what a client is asked to do.

A driver is given these names and does each against a broker of its own, on nodes that are named for the behaviour.
"""

from typing import Final, NamedTuple

__all__ = ["BEHAVIOURS", "RECONNECT", "Behaviour"]


class Behaviour(NamedTuple):
    """One row."""

    name: str
    meaning: str
    """What holds where it passed, for the page."""


RECONNECT: Final = "reconnect"
"""The one behaviour for which the broker is killed and started again, when the driver says so."""

BEHAVIOURS: Final = (
    Behaviour("send", "ten durable messages are sent, and each is told to be accepted"),
    Behaviour("receive", "they come in order, with bodies, ids, subjects and application properties as they were sent"),
    Behaviour("accepted", "an accepted message is gone"),
    Behaviour("rejected", "a rejected message is gone, and the next one comes"),
    Behaviour("released", "a released message comes again, and was never counted as delivered"),
    Behaviour("modified", "a message modified with delivery-failed comes again, with delivery-count 1"),
    Behaviour("lost-link", "what a closed link or connection had not settled comes again, to another one"),
    Behaviour("browse", "a source with distribution-mode copy shows all messages, and all are there still"),
    Behaviour("selector", "a receiver with a JMS selector gets what matches, another one the rest"),
    Behaviour("temporary-queue", "a dynamic source has an address; what another connection sends there comes"),
    Behaviour("temporary-topic", "two subscribers of a dynamic topic each get what is sent there"),
    Behaviour("topic", "two subscribers of a topic each get what is sent there from then on"),
    Behaviour("durable-subscription", "what is sent while its subscriber is away comes when it is back"),
    Behaviour("shared-subscription", "two receivers of one subscription share its messages: each comes once"),
    Behaviour("anonymous-relay", "a sender without a target reaches two queues, by the `to` of each message"),
    Behaviour("credit", "with credit for three of ten messages three come, with more the others"),
    Behaviour("drain", "a drain brings what is there, and ends where nothing more is"),
    Behaviour("large-message", "a message of 3 MiB, of many frames, comes as it was sent"),
    Behaviour(RECONNECT, "the broker is killed and comes back: what was accepted is there, and the client goes on"),
)
"""In the order in which they are run and shown."""
