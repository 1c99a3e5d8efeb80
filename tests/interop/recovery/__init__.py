"""Link recovery with real brokers over TCP: resumed links, unsettled maps, restarts."""
