"""The management types of the whole broker, whose commands the broker carries out and not an engine.

Rule 1. A request becomes a command to a port, which answers by the effects Answered and RefusedCommand.
Rule 2. No answer has a secret.

Imports: protocol/management.
Imported by: protocol/gateway, protocol/management, tools/broker, tools/settings.
Names: CONFIG_TYPE, ConfigCommand, ConfigPort.
"""
