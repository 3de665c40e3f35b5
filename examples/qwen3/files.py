"""Tensors in safetensors files, one or many, read by name and converted.

bf16 is read by hand: NumPy has no such type, and the library's NumPy side refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray

from examples.qwen3.config import read_json
from examples.qwen3.errors import ModelError
from kerngen.runtime import f16, f32

Storage: TypeAlias = type[f16] | type[f32]
Array: TypeAlias = NDArray[np.float32] | NDArray[np.float16]

INDEX = "model.safetensors.index.json"
ALONE = "model.safetensors"
STORED = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
LARGEST_HALF = 65504.0


@final
@dataclass(frozen=True)
class Stored:
    """A tensor in a file: its type there, its shape, and its bytes."""

    path: Path
    kind: str
    shape: tuple[int, ...]
    start: int
    stop: int


@final
class TensorFiles:
    """The tensors of a folder."""

    def __init__(self, folder: Path) -> None:
        """Read the headers of all files; `left` are the tensors not taken yet.

        Raises:
            ModelError: If a file is missing or damaged.
        """
        self._all = _find(folder)
        self.left = dict(self._all)
        self._folder = folder

    def __contains__(self, name: str) -> bool:
        """Return whether a tensor is there, and not yet taken."""
        return name in self.left

    def take(self, name: str, shape: tuple[int, ...], storage: Storage) -> Array:
        """Return a tensor as f32 or f16.

        Raises:
            ModelError: If it is missing, of another shape or type, or beyond f16.
        """
        found = self._all.get(name)
        self.left.pop(name, None)
        if found is None:
            raise ModelError(f"{self._folder} has no tensor {name!r}.")
        if found.kind not in STORED:
            raise ModelError(
                f"{name!r} in {found.path.name} is {found.kind}; this example reads "
                f"{', '.join(STORED)}."
            )
        if found.shape != shape:
            raise ModelError(
                f"{name!r} in {found.path.name} is {list(found.shape)}, where config.json "
                f"asks for {list(shape)}."
            )
        return convert(name, found, storage)

    @property
    def is_quantized(self) -> bool:
        """Whether a matrix is in blocks of integers: none is."""
        return False

    def bits_of(self, name: str) -> None:
        """Return how many bits a matrix has in blocks of integers: none is so."""

    def take_codes(self, name: str, shape: tuple[int, ...]) -> NoReturn:
        """Refuse: no matrix is in blocks of integers."""
        raise AssertionError(f"{name} of {shape} is of floats")

    def skip(self, name: str) -> None:
        """Leave a tensor that is another one's copy, if it is there."""
        self.left.pop(name, None)

    def check_rest(self) -> None:
        """Raise ModelError if a tensor was not taken: the model would be another one."""
        if self.left:
            name = min(self.left)
            raise ModelError(
                f"{self.left[name].path.name} has {name!r} (one of {len(self.left)}), "
                "which this example doesn't know."
            )


def _find(folder: Path) -> dict[str, Stored]:
    if not (folder / INDEX).exists():
        return _read_header(folder / ALONE)
    found: object = read_json(folder / INDEX).get("weight_map")
    if not isinstance(found, dict):
        raise ModelError(f"{folder / INDEX} has no weight_map.")
    weights = cast("dict[str, str]", found)
    files = {name: _read_header(folder / name) for name in sorted({*weights.values()})}
    for name, file in weights.items():
        if name not in files[file]:
            raise ModelError(f"{file} has no {name!r}, which {INDEX} looks for there.")
    return {name: files[file][name] for name, file in weights.items()}


def _read_header(path: Path) -> dict[str, Stored]:
    """Read where a file's tensors are: 8 bytes, a header of JSON, and the data."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if 8 + length > size:
                raise _damaged(path, "its header is longer than the file")
            header = json.loads(file.read(length))
    except OSError as error:
        raise ModelError(f"{path} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise _damaged(path, "its header is no JSON") from error
    header.pop("__metadata__", None)
    return {
        name: _place(path, name, entry, 8 + length, size)
        for name, entry in header.items()
    }


def _place(
    path: Path, name: str, entry: Mapping[str, Any], base: int, size: int
) -> Stored:
    try:
        kind, shape = str(entry["dtype"]), tuple(int(each) for each in entry["shape"])
        start, stop = (base + int(each) for each in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"its entry of {name!r} is incomplete") from error
    # Of a type that is not known, the tensor may still be one that is not needed.
    nbytes = stop - start
    if kind in STORED:
        nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(STORED[kind]).itemsize
    if not base <= start <= stop <= size or stop - start != nbytes:
        raise _damaged(path, f"the bytes of {name!r} are not all there")
    return Stored(path, kind, shape, start, stop)


def _damaged(path: Path, why: str) -> ModelError:
    return ModelError(f"{path} is damaged: {why}. Download it again.")


def convert(name: str, found: Stored, storage: Storage) -> Array:
    """Read a tensor of floats.

    Raises:
        ModelError: If it is beyond f16.
    """
    data = np.memmap(found.path, np.uint8, "r", found.start, found.stop - found.start)
    stored: NDArray[Any] = data.view(STORED[found.kind]).reshape(found.shape)
    if storage is f32:
        return _as_single(stored) if found.kind == "BF16" else stored.astype(np.float32)
    if found.kind == "F16":
        return np.asarray(stored)
    return _as_half(name, found, stored)


def _as_single(stored: NDArray[Any]) -> NDArray[np.float32]:
    """Return bf16 as f32, of which it is the upper half."""
    wide = stored.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def _as_half(name: str, found: Stored, stored: NDArray[Any]) -> NDArray[np.float16]:
    """Return f32 or bf16 rounded to f16."""
    with np.errstate(over="ignore"):
        if found.kind == "BF16":
            # A table of all 65,536 is ten times as fast as shifting, and the same bits.
            table = _as_single(np.arange(1 << 16, dtype=np.uint16))
            half: NDArray[np.float16] = table.astype(np.float16)[stored]
        else:
            half = stored.astype(np.float16)
    if not np.isfinite(half).all():
        raise ModelError(
            f"{name!r} in {found.path.name} has values that are not finite, or beyond "
            f"f16's largest, {LARGEST_HALF:.0f}: load it as f32."
        )
    return half
