"""The fold of links: producers and consumers that come and go."""

from msgspec.structs import replace

from ambermq.engine.entries.outcome import MODIFIED_FAILED
from ambermq.engine.events import ConsumerAttached, ConsumerDetached, ProducerAttached, ProducerDetached
from ambermq.engine.fold.node_links import linked, unlinked
from ambermq.engine.fold.suspended_links import without_tags
from ambermq.engine.fold.tables import without_keys
from ambermq.engine.model.state import Consumer, Producer, State

__all__ = ["consumer_attached", "consumer_detached", "producer_attached", "producer_detached", "without_producers"]


def producer_attached(state: State, event: ProducerAttached) -> State:
    """Return the state with one more link that sends."""
    names = (event.muxer, event.destination, event.container, event.link, event.sending, event.node, event.owns)
    producer, links = Producer(event.offset, *names, event.user, event.keeping), state.links
    for node in producer.nodes:
        links = linked(links, node, producer.id)
    producers = state.producers.set(producer.id, producer)
    return state.with_fields(time_us=event.time_us, producers=producers, links=links)


def producer_detached(state: State, event: ProducerDetached) -> State:
    """Return the state without a link that sends."""
    producer = state.producers.get(event.producer)
    if producer is None:
        return state.with_fields(time_us=event.time_us)
    links = state.links
    for node in producer.nodes:
        links = unlinked(links, node, producer.id)
    state = without_tags(state, producer.id)
    return state.with_fields(time_us=event.time_us, producers=state.producers.delete(producer.id), links=links)


def consumer_attached(state: State, event: ConsumerAttached) -> State:
    """Return the state with one more link that receives."""
    names = (event.queue, event.container, event.link, event.selector, event.owns, event.is_exclusive)
    consumer = Consumer(event.offset, *names, event.user, event.keeping)
    state = state.with_fields(time_us=event.time_us, consumers=state.consumers.set(event.offset, consumer))
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    state = state.with_fields(receivers=linked(state.receivers, queue.id, event.offset))
    return state.with_queue(replace(queue, consumers=queue.consumers + 1), event.time_us)


def consumer_detached(state: State, event: ConsumerDetached) -> State:
    """Return the state without a link that receives; what it held is available again."""
    consumer = state.consumers.get(event.consumer)
    if consumer is None:
        return state
    state = state.with_fields(time_us=event.time_us, consumers=state.consumers.delete(consumer.id))
    queue = state.queues.get(consumer.queue)
    if queue is None:
        return state
    state = state.with_fields(receivers=unlinked(state.receivers, queue.id, consumer.id))
    queue = queue.release_consumer(consumer.id, MODIFIED_FAILED, state.elapsed_us(event.time_us))
    return state.with_queue(replace(queue, consumers=queue.consumers - 1), event.time_us)


def without_producers(state: State, node: int) -> State:
    """Return the state without the producers that send to a muxer, or to a queue with a lifetime policy."""
    gone = state.links.get(node)
    if gone is None:
        return state
    links = state.links.delete(node)
    for producer in gone:
        for other in state.producers[producer].nodes:
            links = unlinked(links, other, producer)
        state = without_tags(state, producer)
    return state.with_fields(producers=without_keys(state.producers, gone), links=links)
