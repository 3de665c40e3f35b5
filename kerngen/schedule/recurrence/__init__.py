"""Strategies `recur`, `loop` and `steps`: recurrences."""
