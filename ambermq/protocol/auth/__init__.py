"""Who a peer is, and what it may do: peers, identities, SASL exchanges, users, rules.

Rule 1. Pure: no socket, no clock, no thread. The server reads the files, and runs what takes long in threads.
Rule 2. An unknown user and a wrong password have the same answer, after the same work.
Rule 3. What is not allowed is refused: a damaged file never opens the door.

Imports: engine, engine/model, engine/patterns, log, log/format.
Imported by: protocol/gateway, protocol/management, protocol/server, tools.
Names: Identity, Peer, Authenticator, Access, Rule, RuleSet, Users, User, Verifier, TokenKey.
"""
