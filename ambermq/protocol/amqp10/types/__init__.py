"""AMQP values and their bytes: decoder, encoder, and the types that Python lacks.

Rule 1. decode(encode(x)) == x, type included.
Rule 2. Whatever the bytes are, the answer is a value or a DecodeError.
Rule 3. Nesting lies on a list, never on Python's stack, and is bounded.

Imports: protocol/amqp10.
Imported by: every other room of amqp10, protocol/gateway, protocol/management, protocol/server, tools.
Names: decode, encode, Symbol, Described, Buffer.
"""
