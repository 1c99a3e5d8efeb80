"""The spans of messages leave the broker: a bounded queue, and a thread that sends them to a collector.

Rule 1. Nothing of this package is imported without `telemetry.endpoint`; OpenTelemetry itself is the extra `otel`.
Rule 2. The event loop only appends to the queue. A span that finds it full is dropped and counted.
Rule 3. A collector that is down, slow or hostile costs spans, which are counted, and nothing else.

Imports: ambermq, engine/*, protocol/gateway, protocol/telemetry, tools/config, tools/terminal.
Imported by: tools/broker.
Names: Telemetry, open_telemetry, SpanExport.
"""
