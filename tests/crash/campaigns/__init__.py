"""The campaigns: what runs while a broker is killed, or its power is cut."""
