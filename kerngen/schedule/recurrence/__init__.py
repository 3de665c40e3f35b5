"""Strategies `recur`, `loop`, `steps` and `fold`: recurrences."""
