"""From the equations of a kernel to stages: passes that rewrite, inline, hoist and group."""
