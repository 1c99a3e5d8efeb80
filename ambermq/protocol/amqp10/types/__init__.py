"""AMQP values and their bytes: decoder, encoder, and the types that Python lacks.

Rule 1. decode(encode(x)) == x, type included.
Rule 2. For any bytes, decoding returns a value or raises a DecodeError.
Rule 3. Nesting uses a list, never Python's stack, and is bounded.

Imports: protocol/amqp10.
Imported by: every other package of amqp10, protocol/gateway, protocol/management, protocol/server, tools.
Names: decode, encode, Symbol, Described, Buffer.
"""
