"""The alias NAME/$DeadLetterQueue: the dead-letter queue of the queue NAME, for links that receive or browse.

The node of that queue has the alias NAME/$DeadLetterQueue/$management (nodes/entity_node.py).

Rule 1. The alias means the queue that the setting `dead_letter` of NAME names now. A target that is no queue has none.
Rule 2. The user needs the action on both queues: the alias gives no access, and says nothing of a queue that the user
        does not see.
"""

from dataclasses import replace
from typing import Final

from ambermq.engine.address import NodeKind, parse_address, queue_address, queue_name
from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms, Refusal
from ambermq.protocol.gateway.links.link_authority import check_consumer
from ambermq.protocol.gateway.links.link_peer import LinkPeer

__all__ = ["ALIAS", "dead_letter_queue", "is_alias", "resolved_terms"]

ALIAS: Final = "/$DeadLetterQueue"
"""The end of an alias, as Service Bus has it."""


def is_alias(address: str) -> bool:
    """Return whether an address is an alias of a dead-letter queue."""
    return address.endswith(ALIAS)


def dead_letter_queue(engine: EnginePort, name: str) -> str:
    """Return the address of the dead-letter queue of the queue `name`. Raises Refused if it has none."""
    queue = engine.state.queue_named(name)
    target = "" if queue is None else queue.settings.dead_letter
    parsed = parse_address(target, name_bytes_max=engine.config.name_bytes_max) if target else None
    if parsed is not None and parsed.kind is NodeKind.QUEUE and engine.state.queue_named(parsed.name) is not None:
        return queue_address(parsed.name)
    if queue is None:
        why = f"no queue {name!r:.80}"
    elif not target:
        why = f"queue {name!r:.80} has no dead-letter queue (dead_letter)"
    elif parsed is not None and parsed.kind is NodeKind.QUEUE:
        why = f"the dead-letter queue {parsed.name!r:.80} of queue {name!r:.80} does not exist: declare it"
    else:
        why = f"the dead-letter target {target!r:.80} of queue {name!r:.80} is no queue"
    raise Refused(AmqpCondition.NOT_FOUND, f"there is no node at {name + ALIAS!r:.300}: {why}")


def resolved_terms(peer: LinkPeer, terms: ConsumingTerms) -> ConsumingTerms:
    """Return terms whose address is an alias with the address of the queue that it means. Raises Refusal."""
    engine = peer.gateway.engine
    asked = replace(terms, address=terms.address.removesuffix(ALIAS))
    try:
        name = queue_name(asked.address, name_bytes_max=engine.config.name_bytes_max)
        check_consumer(peer, replace(asked, address=queue_address(name)))
        return replace(terms, address=dead_letter_queue(engine, name))
    except Refused as refused:
        raise Refusal(refused.condition, refused.description) from refused
