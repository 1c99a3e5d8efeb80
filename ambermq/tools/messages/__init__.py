"""Messages on the command line: the commands send, receive and bench, and a message as text, JSON or a preview.

Rule 1. What the broker stores can be shown: what cannot be decoded is hex with the reason.
Rule 2. A message survives `receive --ndjson | send --ndjson` with every type, section and field.

Imports: log, log/storage, protocol/amqp10/*, tools/client, tools/past, tools/terminal.
Imported by: tools/dataset, tools/history, tools/demo.
Names: Publisher, Subscriber, Load, MessageDraft, body_text.
"""
