"""Frames: split from the input, recognised when they repeat, packed from templates, and queued for output.

Rule 1. A recogniser takes only frames that repeat known bytes: every other frame goes through the general decoder.
Rule 2. A template's frame decodes to what the general encoder would have written.
Rule 3. Large payloads stay buffers of their own and are never copied.

Imports: protocol/amqp10, protocol/amqp10/performatives, protocol/amqp10/types.
Imported by: protocol/amqp10/link, protocol/amqp10/session, protocol/amqp10/connection, protocol/server.
Names: FrameReader, OutputBuffer, TransferRecogniser, DispositionRecogniser, TransferTemplate.
"""
