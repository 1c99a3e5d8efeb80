"""Strategies for messages."""

from hypothesis import strategies as st

from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message
from tests.protocol.amqp_values import binaries, composites_named, leaves, symbol_maps, texts, values

_bodies = st.one_of(
    st.lists(st.builds(Data, binaries), min_size=1, max_size=3).map(tuple),
    st.lists(st.builds(AmqpSequence, st.lists(leaves, max_size=3)), min_size=1, max_size=3).map(tuple),
    st.builds(AmqpValue, values).map(lambda value: (value,)),
)

messages = st.builds(
    Message,
    header=st.none() | composites_named("header"),
    delivery_annotations=st.none() | symbol_maps,
    message_annotations=st.none() | symbol_maps,
    properties=st.none() | composites_named("properties"),
    application_properties=st.none() | st.dictionaries(texts, leaves, max_size=3),
    body=_bodies,
    footer=st.none() | symbol_maps,
)
"""Any message."""
