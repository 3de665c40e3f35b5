"""A typed facade over the part of wgpu that the runtime uses.

wgpu ships no type information; these protocols keep its `Any` at the door.
"""

from __future__ import annotations

from typing import Any, TypeAlias

GPUBuffer: TypeAlias = Any
"""A caller's `wgpu.GPUBuffer`."""

GPUDevice: TypeAlias = Any
"""A caller's `wgpu.GPUDevice`."""
