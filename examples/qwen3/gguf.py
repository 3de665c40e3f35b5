"""Models in a GGUF file, as llama.cpp writes them: sizes, and tensors by Hugging Face's names.

Of the quantized types it reads Q4_0 and Q8_0: blocks of 32 numbers, each a scale in f16 and
integers of 4 or 8 bits, which the kernels of `quantized` take as they are.  In a block of
Q4_0, byte j has number j in its lower half and number j + 16 in the upper one, 8 more than
each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final, final

import numpy as np
from numpy.typing import NDArray

from examples.qwen3.config import FAMILIES, Config, Family
from examples.qwen3.errors import ModelError
from examples.qwen3.files import Array, Storage, Stored, convert
from examples.qwen3.quantized import BLOCK, Bits
from kerngen.runtime import f32

SUFFIX: Final = ".gguf"
MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
ALIGNMENT: Final = 32

NUMBERS: Final = "BbHhIif?"
"""The first types of values, by their numbers; then come strings, arrays, and 64 bits."""
STRING, ARRAY = 8, 9
WIDE: Final = {10: "Q", 11: "q", 12: "d"}

TYPES: Final = {0: "F32", 1: "F16", 2: "Q4_0", 8: "Q8_0", 30: "BF16"}
"""The types of tensors that are read, by their numbers."""

BITS: Final[Mapping[str, Bits]] = {"Q4_0": 4, "Q8_0": 8}
SCALE: Final = 2
"""The bytes of a block's scale."""

LAYER_NAMES: Final = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
NAMES: Final = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


@final
class GgufFile:
    """A file's metadata and tensors."""

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            ModelError: If the file is damaged, or no GGUF.
        """
        self.path = path
        try:
            with path.open("rb") as file:
                reader = _Reader(path, file)
                self.metadata, self._tensors = reader.header()
        except OSError as error:
            raise ModelError(f"{path} can't be read: {error.strerror}.") from error
        self._taken: set[str] = set()
        self._heads: dict[str, int] = {}

    # The configuration

    def config(self) -> Config:
        """Return the sizes of the model.

        Raises:
            ModelError: If one is missing, or the model is computed otherwise.
        """
        family = self.metadata.get("general.architecture")
        if family not in FAMILIES:
            raise ModelError(
                f"{self.path.name}: the general.architecture is {family!r}; this example "
                f"runs {' and '.join(FAMILIES)}."
            )
        self._check_angles(family)
        heads = self._count(family, "attention.head_count")
        kv_heads = self._count(family, "attention.head_count_kv", heads)
        width = self._count(family, "embedding_length")
        head_width = self._count(family, "attention.key_length", width // heads)
        if family == "llama":
            self._heads = {"attn_q": heads, "attn_k": kv_heads}
        embedding = self._tensors.get("token_embd.weight")
        eos = self.metadata.get("tokenizer.ggml.eos_token_id")
        config = Config(
            family=family,
            layers=self._count(family, "block_count"),
            width=width,
            heads=heads,
            kv_heads=kv_heads,
            head_width=head_width,
            hidden=self._count(family, "feed_forward_length"),
            vocabulary=embedding.shape[0] if embedding else 1,
            positions=self._count(family, "context_length"),
            eps=self._number(family, "attention.layer_norm_rms_epsilon"),
            theta=self._number(family, "rope.freq_base", 10000.0),
            tied="output.weight" not in self._tensors,
        )
        return replace(config, eos=(eos,)) if isinstance(eos, int) else config

    def _check_angles(self, family: Family) -> None:
        kind = self.metadata.get(f"{family}.rope.scaling.type", "none")
        if kind != "none":
            raise ModelError(
                f"{self.path.name}: the rope.scaling.type is {kind!r}; this example only "
                "computes 'none'."
            )

    def _number(self, family: Family, key: str, default: float | None = None) -> float:
        value: Any = self.metadata.get(f"{family}.{key}", default)
        if type(value) not in {int, float} or not value > 0:
            raise ModelError(
                f"{self.path.name}: {family}.{key} is no positive number, but {value!r}."
            )
        return float(value)

    def _count(self, family: Family, key: str, default: int | None = None) -> int:
        value = self._number(family, key, default)
        if value != int(value):
            raise ModelError(f"{self.path.name}: {family}.{key} is {value}, no count.")
        return int(value)

    # The tensors

    @property
    def is_quantized(self) -> bool:
        """Whether a matrix is in blocks of integers."""
        return any(each.kind in BITS for each in self._tensors.values())

    def __contains__(self, name: str) -> bool:
        """Return whether the file has a tensor, by Hugging Face's name."""
        return _own_name(name) in self._tensors

    def bits_of(self, name: str) -> Bits | None:
        """Return how many bits a matrix has in blocks of integers; None if it has none."""
        found = self._tensors.get(_own_name(name))
        return BITS.get(found.kind) if found else None

    def take(self, name: str, shape: tuple[int, ...], storage: Storage) -> Array:
        """Return a tensor as f32 or f16.

        Raises:
            ModelError: If it is missing, of another shape or type, or beyond f16.
        """
        found = self._find(name, shape)
        if found.kind not in BITS:
            whole: Array = self._in_order(
                name, convert(_own_name(name), found, storage)
            )
            return whole
        codes, scales = self.take_codes(name, shape)
        kept: Any = np.float32 if storage is f32 else np.float16
        blocks: Any = codes.astype(kept).reshape(*scales.shape, BLOCK)
        near: Array = (blocks * scales.astype(kept)[..., None]).reshape(shape)
        return near

    def take_codes(
        self, name: str, shape: tuple[int, ...]
    ) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
        """Return the integers of a matrix, and the scales of its blocks."""
        found = self._find(name, shape)
        rows, columns = shape
        size = SCALE + BLOCK * BITS[found.kind] // 8
        data = np.memmap(
            found.path, np.uint8, "r", found.start, (found.stop - found.start)
        )
        blocks = data.reshape(rows, columns // BLOCK, size)
        scales = np.ascontiguousarray(blocks[..., :SCALE]).view(np.float16)[..., 0]
        packed = np.ascontiguousarray(blocks[..., SCALE:])
        codes: NDArray[np.int8] = packed.view(np.int8)
        if found.kind == "Q4_0":
            halves = np.concatenate([packed & 0xF, packed >> 4], axis=-1)
            codes = halves.astype(np.int8) - np.int8(8)
        whole = self._in_order(name, codes.reshape(rows, columns))
        return whole, self._in_order(name, scales)

    def skip(self, name: str) -> None:
        """Leave a tensor that is another one's copy, if it is there."""
        self._taken.add(_own_name(name))

    def check_rest(self) -> None:
        """Raise ModelError if a tensor was not taken: the model would be another one."""
        left = sorted(self._tensors.keys() - self._taken)
        if left:
            raise ModelError(
                f"{self.path.name} has {left[0]!r} (one of {len(left)}), which this "
                "example doesn't know."
            )

    def _find(self, name: str, shape: tuple[int, ...]) -> Stored:
        own = _own_name(name)
        found = self._tensors.get(own)
        if found is None:
            raise ModelError(f"{self.path.name} has no tensor {own!r}.")
        if found.kind not in TYPES.values():
            raise ModelError(
                f"{own!r} in {self.path.name} is of type {found.kind}; this example reads "
                f"{', '.join(TYPES.values())}."
            )
        if found.shape != shape:
            raise ModelError(
                f"{own!r} in {self.path.name} is {list(found.shape)}, where its sizes ask "
                f"for {list(shape)}."
            )
        self._taken.add(own)
        return found

    def _in_order(self, name: str, array: Any) -> Any:
        """Bring the rows of a head back into halves.

        For Llama, llama.cpp has the rows of both halves in turns: it turns neighbours.
        """
        heads = self._heads.get(_own_name(name).split(".")[-2])
        if heads is None:
            return array
        rows, columns = array.shape
        turned = array.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2)
        return turned.reshape(rows, columns)


def _own_name(name: str) -> str:
    """Return the name in GGUF files of a tensor in Hugging Face's."""
    if name in NAMES:
        return NAMES[name]
    number, _, rest = name.removeprefix("model.layers.").partition(".")
    known = LAYER_NAMES.get(rest.removesuffix(".weight"))
    return f"blk.{number}.{known}.weight" if known else name


@final
@dataclass
class _Reader:
    """Reads a header from front to back."""

    path: Path
    file: BinaryIO

    def header(self) -> tuple[dict[str, Any], dict[str, Stored]]:
        """Return the metadata, and the tensors by name."""
        if self.file.read(4) != MAGIC:
            raise ModelError(f"{self.path} is no GGUF file.")
        version = self._one("I")
        if version not in VERSIONS:
            raise ModelError(
                f"{self.path} is of GGUF's version {version}; this example reads 2 and 3, "
                "little-endian."
            )
        tensors, values = self._one("Q"), self._one("Q")
        metadata = {self._text(): self._value(self._one("I")) for _ in range(values)}
        entries = [self._entry() for _ in range(tensors)]
        align = metadata.get("general.alignment", ALIGNMENT)
        start = -(-self.file.tell() // align) * align
        return metadata, dict(self._placed(entries, start))

    def _read(self, count: int) -> bytes:
        found = self.file.read(count) if count <= self._size else b""
        if len(found) != count:
            raise self._damaged("it ends in its header")
        return found

    @cached_property
    def _size(self) -> int:
        return self.path.stat().st_size

    def _damaged(self, why: str) -> ModelError:
        return ModelError(f"{self.path} is damaged: {why}. Download it again.")

    def _one(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self._read(struct.calcsize(f"<{code}")))[0]

    def _text(self) -> str:
        return self._read(self._one("Q")).decode("utf-8", errors="replace")

    def _value(self, kind: int) -> Any:
        if kind < len(NUMBERS):
            return self._one(NUMBERS[kind])
        if kind in WIDE:
            return self._one(WIDE[kind])
        if kind == STRING:
            return self._text()
        if kind == ARRAY:
            inner, count = self._one("I"), self._one("Q")
            if count > self._size:
                raise self._damaged("it ends in its header")
            return [self._value(inner) for _ in range(count)]
        raise self._damaged(f"a value is of type {kind}")

    def _entry(self) -> tuple[str, int, tuple[int, ...], int]:
        """Read a tensor's name, type, shape, and place; the last axis comes first."""
        name = self._text()
        axes = [self._one("Q") for _ in range(self._one("I"))]
        return name, self._one("I"), tuple(reversed(axes)), self._one("Q")

    def _placed(
        self, entries: list[tuple[str, int, tuple[int, ...], int]], base: int
    ) -> Iterator[tuple[str, Stored]]:
        for name, number, shape, offset in entries:
            kind = TYPES.get(number, str(number))
            start = base + offset
            stop = start + _bytes(kind, shape)
            if stop > self._size or (kind in BITS and shape[-1] % BLOCK):
                raise self._damaged(f"the bytes of {name!r} are not all there")
            yield name, Stored(self.path, kind, shape, start, stop)


def _bytes(kind: str, shape: tuple[int, ...]) -> int:
    """Return what a tensor takes; of a type that is not read, nothing is known."""
    count = int(np.prod(shape, dtype=np.int64))
    if kind in BITS:
        return count // BLOCK * (SCALE + BLOCK * BITS[kind] // 8)
    return count * {"F32": 4, "F16": 2, "BF16": 2}.get(kind, 0)
