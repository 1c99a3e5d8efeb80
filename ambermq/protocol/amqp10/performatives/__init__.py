"""Performatives and other composite types: classes, and their fields read and written by tables.

Rule 1. Classes and tables are generated from the OASIS XML by tools/spec, and are never edited by hand.
Rule 2. A field has its default where it is absent; a mandatory one that is absent is a DecodeError.

Imports: protocol/amqp10, protocol/amqp10/types.
Imported by: every room of amqp10 above it, protocol, tools.
Names: Composite, Open, Begin, Attach, Transfer, Error, decode_composite.
"""
