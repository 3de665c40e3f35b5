"""States of a trainer as files: written whole or not at all, and checked when read.

A checkpoint is a safetensors file.  Its tensors are a state's arrays; its metadata says
what it is, which step it is of, and a digest over all of it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from kerngen.train.errors import CheckpointError

FORMAT = "kerngen.trainer.1"


def write_checkpoint(path: Path, state: Mapping[str, NDArray[np.generic]]) -> None:
    """Write a state; an error or a crash leaves the file that was there before.

    Raises:
        OSError: If the file can't be written.
    """
    metadata = {"format": FORMAT, "digest": _digest(state)}
    data = save({name: _contiguous(array) for name, array in state.items()}, metadata)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_checkpoint(path: Path) -> dict[str, NDArray[np.generic]]:
    """Return the state in a file.

    Raises:
        CheckpointError: If it is no checkpoint, or its contents are not what was written.
        OSError: If the file can't be read.
    """
    path.stat()
    try:
        metadata, state = _open(path)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} is damaged, or no safetensors file: {error}."
        ) from error
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is no checkpoint of a trainer: its format is "
            f"{metadata.get('format')!r}; expected {FORMAT!r}."
        )
    if metadata.get("digest") != _digest(state):
        raise CheckpointError(
            f"{path} is damaged: its contents are not those that were written."
        )
    return state


def _open(path: Path) -> tuple[dict[str, str], dict[str, NDArray[np.generic]]]:
    """Return the metadata and the arrays of a safetensors file."""
    untyped: Any = safe_open
    with untyped(path, framework="numpy") as file:
        names: list[str] = file.keys()
        return file.metadata() or {}, {name: file.get_tensor(name) for name in names}


def _contiguous(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.ascontiguousarray(array).reshape(array.shape)


def _digest(state: Mapping[str, NDArray[np.generic]]) -> str:
    """Return a hash of names, types, shapes and contents."""
    digest = hashlib.sha256()
    for name in sorted(state):
        array = state[name]
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
