"""Spans of messages: what the gateway of a virtual host does with a message of a trace becomes a span.

Rule 1. Pure: the sink of the spans, which is given, has the clock, the chance and the thread.
Rule 2. Without `telemetry.endpoint` this package is not imported, and the engine of the gateway is not wrapped.
Rule 3. Only messages with a sampled trace context have spans. No body, and no property of a message, is in them.

Imports: engine/*, protocol/amqp10/*, protocol/gateway/*.
Imported by: tools/broker/telemetry.
Names: MessageTracer, TracedEngine, TraceContext, Span, SpanSink.
"""
