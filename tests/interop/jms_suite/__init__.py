"""The JMS conformance tests of the JORAM project, run by Qpid JMS against a real broker."""
