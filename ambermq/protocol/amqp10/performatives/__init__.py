"""Performatives and other composite types: classes, and their fields read and written by the AMQP types they name.

Rule 1. Each type has one class. tools/spec generates the classes from the OASIS XML.
Rule 2. An absent field has its default; an absent mandatory field is a DecodeError.

Imports: protocol/amqp10, protocol/amqp10/types.
Imported by: every package of amqp10 above it, protocol, tools.
Names: Composite, Open, Begin, Attach, Transfer, Error, decode_composite.
"""
