"""Strategy `scatter`: keyed reductions, by atomics or by sorted lists."""
