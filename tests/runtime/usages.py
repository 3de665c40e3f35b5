"""What wgpu buffers may be used for, as WebGPU numbers it."""

from __future__ import annotations

COPY = 0x4 | 0x8
STORAGE = 0x80
