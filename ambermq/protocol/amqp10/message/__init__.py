"""Messages: their sections found, recognised, read and written.

Rule 1. The bare message stays byte for byte as its sender wrote it.
Rule 2. A section is decoded only if and as far as a caller needs it.
Rule 3. For any bytes the outline, the recogniser and the general decoder agree.

Imports: protocol/amqp10, protocol/amqp10/performatives, protocol/amqp10/types.
Imported by: protocol/gateway, protocol/management, tools.
Names: Message, decode_message, SectionScanner, read_outline, MessageRecogniser, with_header.
"""
