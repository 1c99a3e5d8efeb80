"""Messages: their sections found, read and written.

Rule 1. The bare message stays byte for byte as its sender wrote it.
Rule 2. A section is decoded only as far as it is asked about.
Rule 3. For any bytes the fast outline and the general decoder give the same result.

Imports: protocol/amqp10, protocol/amqp10/performatives, protocol/amqp10/types.
Imported by: protocol/gateway, protocol/management, tools.
Names: Message, decode_message, outline, with_header.
"""
