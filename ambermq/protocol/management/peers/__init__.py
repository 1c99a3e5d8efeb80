"""The peers of the broker at the `$management` node: its connections, sessions and links.

Rule 1. These objects are of the whole broker, whichever virtual host the connection of the request belongs to.
Rule 2. A listing is in the order of acceptance, so a client that reads page by page gets each object once.
Rule 3. DELETE closes an object from the broker's end, with an error that names the reason. Its peer may come back.
Rule 4. Texts of clients are cut.

Imports: engine, engine/commands, engine/model, protocol/amqp10, protocol/auth, protocol/management.
Imported by: protocol/gateway, protocol/management, protocol/server/vhosts.
Names: PeerPort, CloseEndpoint, Listing, CONNECTION_OPERATIONS, SESSION_OPERATIONS, LINK_OPERATIONS.
"""
