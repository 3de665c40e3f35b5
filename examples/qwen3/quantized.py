"""Matrices in 4 or 8 bits: integers, and a scale for each block of 32 in a row.

A weight is its integer times the scale of its block, as in ggml's Q4_0 and Q8_0:

    codes, scales = quantize(weights, 4)
    near = dequantize(codes, scales)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from examples.qwen3.arenas import Arenas, Kind
from examples.qwen3.config import Config
from kerngen.runtime import Context, Matrix, Tensor3, Vector, f16, f32, i4, i8
from kerngen_kernels import decoder, quantized

Array: TypeAlias = NDArray[Any]
Bits: TypeAlias = Literal[4, 8]

BLOCK: Final = 32
"""How many neighbours share a scale; the kernels of `quantized` know it."""


@final
@dataclass(frozen=True)
class Quantized:
    """A matrix on the device: one row per output."""

    codes: Matrix[Any]
    """Of i4 or i8."""
    scales: Matrix[f16]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.codes.nbytes + self.scales.nbytes


def quantize(weights: Array, bits: Bits) -> tuple[Array, Array]:
    """Return the integers of a matrix, as int8, and the scales of its blocks, as float16.

    What is furthest from 0 in a block becomes the least integer: -8 or -128.  There is one
    more below 0 than above.
    """
    rows, columns = weights.shape
    lowest = -(1 << (bits - 1))
    padding = -columns % BLOCK
    whole = np.pad(weights.astype(np.float32), ((0, 0), (0, padding)))
    blocks = whole.reshape(rows, -1, BLOCK)
    places = np.abs(blocks).argmax(axis=2, keepdims=True)
    furthest = np.take_along_axis(blocks, places, axis=2)
    scales = (furthest / lowest).astype(np.float16)
    # Divide by the scales as f16 keeps them: the integers correct their rounding.
    wide = scales.astype(np.float32)
    safe = np.where(wide == 0, np.float32(1), wide)
    codes = np.clip(np.rint(blocks / safe), lowest, -1 - lowest).astype(np.int8)
    return codes.reshape(rows, -1)[:, :columns], scales[:, :, 0]


def dequantize(codes: Array, scales: Array) -> Array:
    """Return integers times scales, in float64."""
    repeated = np.repeat(scales.astype(np.float64), BLOCK, axis=1)
    near: Array = codes * repeated[:, : codes.shape[1]]
    return near


def element_of(bits: Bits) -> type[i4 | i8]:
    """Return the type of integers of so many bits."""
    return i4 if bits == 4 else i8


def kinds_of(config: Config, element: Any) -> list[Kind]:
    """Return the tensors of a layer's matrices: of integers, with their scales."""
    shapes = config.matrices
    kinds: list[Kind] = [(shape, element) for shape in shapes]
    if element in (i4, i8):
        kinds += [((rows, -(-columns // BLOCK)), f16) for rows, columns in shapes]
    return kinds


def upload(to: Context | Arenas, weights: Array, bits: Bits) -> Quantized:
    """Quantize a matrix, and bring it to the device."""
    return place(to, *quantize(weights, bits), bits)


def place(to: Context | Arenas, codes: Array, scales: Array, bits: Bits) -> Quantized:
    """Bring integers and scales to the device."""
    return Quantized(to.matrix(codes, element_of(bits)), to.matrix(scales, f16))


@final
class Blocks:
    """The products of a decoder with such matrices; its embedding is in f16."""

    embedding = staticmethod(decoder.embedding_half)
    embedding_part = staticmethod(decoder.embedding_part_half)

    @staticmethod
    def norm_linear(
        x: Matrix[f32],
        gain: Vector[f32],
        w: Quantized,
        *,
        eps: float,
        out: Matrix[f32] | None = None,
    ) -> Matrix[f32]:
        """As `decoder.norm_linear_half`."""
        four = w.codes.element is i4
        run = quantized.norm_linear_i4 if four else quantized.norm_linear_i8
        return run(x, gain, w.codes, w.scales, eps=eps, out=out)

    @staticmethod
    def linear_add(x: Matrix[f32], h: Matrix[f32], w: Quantized) -> None:
        """As `decoder.linear_add_half`."""
        four = w.codes.element is i4
        run = quantized.linear_add_i4 if four else quantized.linear_add_i8
        run(x, h, w.codes, w.scales)

    @staticmethod
    def gated_linear_add(x: Matrix[f32], h: Tensor3[f32], w: Quantized) -> None:
        """As `decoder.gated_linear_add_half`."""
        four = w.codes.element is i4
        run = quantized.gated_linear_add_i4 if four else quantized.gated_linear_add_i8
        run(x, h, w.codes, w.scales)
