"""The imports of modules that `kerngen bind` generates: bind groups and pipelines."""

from __future__ import annotations

from kerngen.runtime.bound.bindings import (
    COMPUTE,
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
from kerngen.runtime.bound.overrides import Override
from kerngen.runtime.bound.pipeline import ComputePipeline, Dispatch
from kerngen.runtime.bound.render import (
    Attribute,
    FragmentShader,
    VertexBuffer,
    VertexShader,
    pipeline_layout,
)
from kerngen.runtime.bound.shader import Shader
from kerngen.runtime.bound.sized import sized

__all__ = [
    "COMPUTE",
    "FRAGMENT",
    "VERTEX",
    "Attribute",
    "BindGroup",
    "BufferBinding",
    "ComputePipeline",
    "Dispatch",
    "FragmentShader",
    "GPUSampler",
    "GPUTextureView",
    "Override",
    "Sampler",
    "Shader",
    "Storage",
    "StorageTexture",
    "Texture",
    "Uniform",
    "VertexBuffer",
    "VertexShader",
    "pipeline_layout",
    "sized",
]
