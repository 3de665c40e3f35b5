"""A small syntax tree of WGSL, with a namer and a printer."""
