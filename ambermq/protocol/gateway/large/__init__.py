"""Messages that never are in memory as a whole: their pieces on the way in, on the way out, and the turns of both.

Rule 1. Of a message that arrives, memory has the piece that is not complete, and those that wait for the disk.
Rule 2. Of a message that leaves, memory has the piece that is being sent, and the next one. One may leave while it
        arrives (arriving_message.py).
Rule 3. A large message takes turns with those of other links: so do its pieces on the way to the disk.

Imports: engine/commands, engine/entries, protocol, protocol/amqp10/*, protocol/gateway, protocol/resources.
Imported by: protocol/gateway.
Names: TurnBudget, Wait, ArrivingMessage, MessageStream, LinkUpload, ConnectionUploads, UploadGate, UploadWindows.
"""
