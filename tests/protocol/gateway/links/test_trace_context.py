"""The context of a trace passes through the broker byte for byte, in a first delivery and in later ones."""

from collections.abc import Mapping
from typing import Any

import pytest

from ambermq.engine.entries.entry import Entry
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.links.outgoing_message import redelivered

_PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_STATE = "vendor=a,other=b"


@pytest.mark.parametrize(
    ("annotations", "properties"),
    [
        ({}, {"traceparent": _PARENT, "tracestate": _STATE}),
        ({Symbol("traceparent"): _PARENT, Symbol("tracestate"): _STATE}, {}),
        ({Symbol("x-opt-traceparent"): _PARENT}, {"Diagnostic-Id": _PARENT}),
    ],
)
@pytest.mark.parametrize("entry", [None, Entry(count=0), Entry(count=2)])
def test_the_names_of_opentelemetry_and_azure(
    annotations: Mapping[Symbol, str], properties: Mapping[str, str], entry: Entry | None
) -> None:
    """Only the header of a redelivered message differs."""
    values: dict[str, Any] = {"message_annotations": annotations or None, "application_properties": properties or None}
    body = Message(header=Header(durable=True), **values, body=(Data(b"x"),)).encode()
    sent = redelivered(body, entry)
    if entry is None or not entry.count:
        assert sent == body
    found = decode_message(sent)
    assert found.message_annotations == (annotations or None)
    assert found.application_properties == (properties or None)
    assert bytes(sent).endswith(Message(**values, body=(Data(b"x"),)).encode())
