"""The driver of the Service Bus SDK, in an environment of its own."""
