"""A small WGSL syntax tree, its namer and its printer."""
