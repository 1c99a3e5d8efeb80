"""Performatives and other composite types: classes, and their fields read and written by the AMQP types they name.

Rule 1. The classes are the one image of the types. tools/spec generates them from the OASIS XML.
Rule 2. A field has its default where it is absent; a mandatory one that is absent is a DecodeError.

Imports: protocol/amqp10, protocol/amqp10/types.
Imported by: every room of amqp10 above it, protocol, tools.
Names: Composite, Open, Begin, Attach, Transfer, Error, decode_composite.
"""
