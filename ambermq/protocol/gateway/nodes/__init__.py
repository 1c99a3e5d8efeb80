"""The broker's own nodes, `$management`, `$cbs` and NAME/$management: requests received, and answers sent.

Rule 1. Every request is answered, or it ends its link.
Rule 2. An answer waits for the log like any promise.
Rule 3. Requests are small, and a client that does not receive its answers gets no credit for more.

Imports: engine, engine/commands, engine/entries, engine/model, engine/model/queue_parts, engine/settings,
    protocol/amqp10/*, protocol/auth, protocol/gateway, protocol/gateway/links, protocol/management,
    protocol/management/*.
Imported by: protocol/gateway, tools/config.
Names: ManagementNode, CbsNode, EntityNode, RequestResponse, NodePeer.
"""
