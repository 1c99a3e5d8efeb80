"""AMQP to engine and back: events of connections become commands, effects become calls on links.

Rule 1. Pure translation: no clock, no socket, no log. It decides nothing about messages.
Rule 2. A fault of a peer ends its link, session or connection; a fault of the broker ends at most one connection.
Rule 3. Gateway is one virtual host. It knows each ConnectionGateway only by a Protocol (connection_peer.py).
Rule 4. A connection whose output may have grown is in `touched` until the server has flushed it.

Imports: engine, engine/commands, engine/entries, engine/history, engine/model, protocol, protocol/amqp10/*,
    protocol/auth, protocol/gateway/*, protocol/management, protocol/management/access,
    protocol/management/administration, protocol/management/peers, protocol/resources.
Imported by: protocol/server.
Names: Gateway, ConnectionGateway, ConnectionLinks, Attaches, EnginePort, BrokerNodes.
"""
