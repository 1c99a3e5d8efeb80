"""The mechanisms of SASL, from both ends: PLAIN, SCRAM, EXTERNAL, ANONYMOUS, and the tokens of child processes.

Rule 1. An exchange has no clock and no thread: a LoginWork carries out what takes long, and waits.
Rule 2. A failure is answered late, and the same whether the user is unknown or the password is wrong.

Imports: protocol, protocol/amqp10/connection, protocol/auth.
Imported by: tools/broker, tools/client.
Names: BrokerAuthenticator, ClientCredentials, LoginThrottle, ScramExchange, PlainExchange.
"""
