"""Explaining syntax errors: recognisers, hints, and words of other languages."""
