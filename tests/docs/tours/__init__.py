"""Pages whose commands run against a broker, each compared with what the page shows."""
