"""The listeners of a server: sockets, and what comes before the first byte of AMQP.

Rule 1. A listener says where a peer comes from and what its transport has proved, before the peer is believed.
Rule 2. A stranger costs a bounded amount of memory and time, and its mistakes are bounded log lines.

Imports: protocol/amqp10, protocol/auth.
Imported by: protocol/server, protocol/server/connections, tools/broker, tools/config, tools/doctor,
    tools/proxy.
Names: Acceptor, Listener, ListenerAddress, ListenerConfig, TransportLayers, TlsContexts, CertificateWatch.
"""
