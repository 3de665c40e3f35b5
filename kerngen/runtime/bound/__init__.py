"""What modules import that `kerngen bind` made of WGSL: bind groups and pipelines."""

from __future__ import annotations

from kerngen.runtime.bound.bindings import Storage, Uniform
from kerngen.runtime.bound.groups import BindGroup
from kerngen.runtime.bound.pipeline import ComputePipeline, Dispatch, Override
from kerngen.runtime.bound.shader import Shader
from kerngen.runtime.bound.sized import sized

__all__ = [
    "BindGroup",
    "ComputePipeline",
    "Dispatch",
    "Override",
    "Shader",
    "Storage",
    "Uniform",
    "sized",
]
