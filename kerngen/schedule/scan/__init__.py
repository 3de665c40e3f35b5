"""Strategy `scan`: prefixes and suffixes."""
