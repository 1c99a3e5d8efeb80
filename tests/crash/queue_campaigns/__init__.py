"""The campaigns that kill a broker under queues, their timers and resumed links, and what they need."""
