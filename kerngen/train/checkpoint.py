"""Checkpoints: a trainer's state in a file, written atomically and checked when read.

A checkpoint is a safetensors file.  Its tensors are a state's arrays; its metadata has
its kind, and a digest over all of it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
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
    """Write a state to a file; if that fails, the old file stays.

    Links are followed, and an existing file's permissions are kept.  A process that is
    killed in the middle may leave a hidden file that ends in `.tmp`.

    Raises:
        OSError: If the file can't be written, or is no regular one.
    """
    goal = path.resolve()
    _check_goal(goal)
    metadata = {"format": FORMAT, "digest": _digest(state)}
    data = save({name: _contiguous(array) for name, array in state.items()}, metadata)
    temporary = goal.with_name(f".{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if goal.exists():
            shutil.copymode(goal, temporary)
        temporary.replace(goal)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(goal.parent)


def _check_goal(goal: Path) -> None:
    """Refuse a goal that is no regular file, or not writable: `replace` would not."""
    if not goal.exists():
        return
    if not goal.is_file():
        raise OSError(errno.EINVAL, "This is not a regular file", str(goal))
    if not os.access(goal, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(goal))


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a new name in it outlives a crash of the machine."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_checkpoint(path: Path) -> dict[str, NDArray[np.generic]]:
    """Return the state in a file.

    Raises:
        CheckpointError: If it is no checkpoint, or its contents are not what was written.
        OSError: If the file can't be read.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.stat()
    try:
        metadata, state = _open(path)
    except (SafetensorError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path} is damaged, or is not a safetensors file of kerngen's: {error}."
        ) from error
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is not a checkpoint of a trainer: its format is "
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
