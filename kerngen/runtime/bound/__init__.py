"""The imports of modules that `kerngen bind` generates: bind groups and pipelines."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar, cast

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
from kerngen.runtime.bound.wide import (
    f64,
    i64,
    mat2x2f64,
    mat2x3f64,
    mat2x4f64,
    mat3x2f64,
    mat3x3f64,
    mat3x4f64,
    mat4x2f64,
    mat4x3f64,
    mat4x4f64,
    u64,
    vec2f64,
    vec2i64,
    vec2u64,
    vec3f64,
    vec3i64,
    vec3u64,
    vec4f64,
    vec4i64,
    vec4u64,
)
from kerngen.runtime.errors import ShapeError
from kerngen.runtime.struct import Struct
from kerngen.runtime.values.codec import struct_dtype

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
    "f64",
    "i64",
    "mat2x2f64",
    "mat2x3f64",
    "mat2x4f64",
    "mat3x2f64",
    "mat3x3f64",
    "mat3x4f64",
    "mat4x2f64",
    "mat4x3f64",
    "mat4x4f64",
    "pipeline_layout",
    "sized",
    "u64",
    "vec2f64",
    "vec2i64",
    "vec2u64",
    "vec3f64",
    "vec3i64",
    "vec3u64",
    "vec4f64",
    "vec4i64",
    "vec4u64",
]


# Classes for structs that end in a runtime-sized array, with a length of it


S = TypeVar("S", bound=Struct)


def sized(struct: type[S], count: int) -> type[S]:
    """Return a struct's class with `count` elements in its runtime-sized array.

    The class is an element type: `ctx.scalar(record, sized(Particles, 100))` is a buffer of one
    such struct, and `arrayLength()` is 100 in a shader that it is bound to.

    Raises ShapeError if the struct does not end in an array, or if `count` is below 1, or
    below the number of elements that the struct's own size has room for.
    """
    found: type[Struct] = _sized(cast("Hashable", struct), count)
    return cast("type[S]", found)


@lru_cache(maxsize=1024)
def _sized(hashable: Hashable, count: int) -> type[Struct]:
    struct = cast("type[Struct]", hashable)
    # WGSL counts the array's elements by the bytes that are bound: the bytes of the struct as
    # declared, up to a multiple of its alignment, may be room for more than one.
    *others, last = struct.FIELDS
    least = max(1, (struct.SIZE - last.offset) // last.stride) if last.stride else 0
    if not last.lengths or count < least:
        rule = f"it has {least} at least" if last.lengths else "it ends in no array"
        raise ShapeError(f"'{struct.__name__}' with {count} elements: {rule}.")
    fields = (*others, replace(last, lengths=(count, *last.lengths[1:])))
    # A buffer is as long as whole words; a struct that is padded would have room for more.
    size = max(struct.SIZE, -(-(last.offset + count * last.stride) // 4) * 4)
    namespace = {
        "__slots__": (),
        "__module__": struct.__module__,
        "FIELDS": fields,
        "SIZE": size,
        "DTYPE": struct_dtype(fields, size),
    }
    made: type[Struct] = type(struct.__name__, (struct,), namespace)
    made.value_class = made
    return made
