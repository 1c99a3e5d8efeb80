"""The command `proxy`: AMQP 1.0 connections recorded between any client and any broker, printed, and replayed.

Rule 1. The relay forwards bytes as it reads them, and writes them to the recording before it forwards them.
Rule 2. A recording has the passwords of its clients: its mode is 0600, and no output shows a password.
Rule 3. A replay compares meaning, not bytes: numbers, tags and addresses that a broker chooses are mapped.

Imports: log, log/format, protocol/amqp10, protocol/amqp10/*, protocol/auth/sasl, protocol/server/listeners,
         tools/client, tools/messages, tools/terminal.
Imported by: tools/scripts.
Names: proxy, RecordingWriter, FrameStream, Trace, Replay.
"""
