"""Link recovery at the gateway."""
