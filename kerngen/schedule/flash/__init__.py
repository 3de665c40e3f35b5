"""Strategy `flash`: attention in one pass over the keys."""
