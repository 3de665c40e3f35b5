"""What modules import that `kerngen bind` made of WGSL: bind groups and pipelines."""

from __future__ import annotations

from kerngen.runtime.bound.bindings import (
    FRAGMENT,
    VERTEX,
    BufferBinding,
    GPUSampler,
    GPUTextureView,
    Sampler,
    Storage,
    StorageTexture,
    Texture,
    Uniform,
)
from kerngen.runtime.bound.groups import BindGroup
from kerngen.runtime.bound.pipeline import ComputePipeline, Dispatch, Override
from kerngen.runtime.bound.shader import Shader
from kerngen.runtime.bound.sized import sized

__all__ = [
    "FRAGMENT",
    "VERTEX",
    "BindGroup",
    "BufferBinding",
    "ComputePipeline",
    "Dispatch",
    "GPUSampler",
    "GPUTextureView",
    "Override",
    "Sampler",
    "Shader",
    "Storage",
    "StorageTexture",
    "Texture",
    "Uniform",
    "sized",
]
