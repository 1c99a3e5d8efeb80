"""Commands on single messages of queues: `ambermq dlq`, `schedule`, `queue move` and `queue copy`.

Rule 1. A client finds messages, a page at a time, and then names them: each request is done wholly or not at all.
Rule 2. A command looks at the messages that were on the queue when it began, so it ends though more arrive.

Imports: engine, engine/entries, engine/history, protocol/amqp10/message, protocol/amqp10/types, tools/client,
    tools/messages, tools/past, tools/terminal.
Imported by: tools.
Names: dlq, schedule, move, copy, MessageMoves, Selection.
"""
