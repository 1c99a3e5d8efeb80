"""The HTTP routes of health and metrics: a path becomes a status, and a text in parts.

Rule 1. Pure: no socket, no clock, no thread. tools/broker serves them, and gives the time.
Rule 2. A part of a text is the work of one turn of the event loop: at most 1,000 queues.
Rule 3. `/healthz` and `/readyz` tell a word and a reason. No client's text is in them.
Rule 4. Labels are `vhost` and `queue` alone, and the number of their values is bounded.

Imports: engine/model, protocol/gateway.
Imported by: protocol/server/vhosts, tools.
Names: Histogram, Readiness, readiness, QueueSelection, metrics_text, METRICS, Answer.
"""
