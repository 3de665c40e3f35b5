"""Verification: a user's kernels, every way that they may run, held to their meaning.

`meaning` computes what a kernel gives by the language alone, in float64, and how far off an
f32 implementation may be.  `ways` forces one variant of one schedule.  `draw` makes calls
up, `trial` runs them amid guard zones, and `campaign` does so for every kernel.
"""
