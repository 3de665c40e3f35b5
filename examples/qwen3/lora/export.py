"""The tuned model as a folder of its own: pairs added to their matrices."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from examples.qwen3.config import read_config, read_json
from examples.qwen3.errors import ModelError
from examples.qwen3.files import ALONE, INDEX, TensorFiles
from examples.qwen3.lora.adapters import Lora
from kerngen.runtime import f32

WEIGHTS = (".safetensors", ".bin", ".gguf", ".pth")
"""Endings of files of weights, which are not copied."""


def check_goal(goal: Path) -> None:
    """Raise ModelError if a folder can't be made there."""
    if goal.exists():
        raise ModelError(f"{goal} exists: name another folder for the tuned model.")
    if not goal.parent.is_dir():
        raise ModelError(f"There is no folder {goal.parent} to write {goal.name} to.")


def export(
    folder: Path, goal: Path, lora: Lora, parameters: Mapping[str, NDArray[Any]]
) -> None:
    """Write a model with its pairs added, in f32, as a folder that `load` reads.

    Tokenizer and chat template are copied.  The folder is there whole or not at all.

    Raises:
        ModelError: If the goal exists, or the model can't be read.
        OSError: If the folder can't be written.
    """
    check_goal(goal)
    tensors = _merged(folder, lora, parameters)
    config = read_json(folder / "config.json")
    for key in ("dtype", "torch_dtype"):
        if key in config:
            config[key] = "float32"
    temporary = goal.with_name(f".{goal.name}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        for file in folder.iterdir():
            if file.is_file() and file.suffix not in WEIGHTS and file.name != INDEX:
                shutil.copyfile(file, temporary / file.name)
        (temporary / "config.json").write_text(json.dumps(config, indent=2), "utf-8")
        # transformers asks for the format.
        data = save(tensors, {"format": "pt"})
        (temporary / ALONE).write_bytes(data)
        temporary.rename(goal)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _merged(
    folder: Path, lora: Lora, parameters: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[np.float32]]:
    files = TensorFiles(folder)
    tensors: dict[str, NDArray[np.float32]] = {
        name: np.asarray(files.take(name, stored.shape, f32), np.float32)
        for name, stored in dict(files.left).items()
    }
    for name in lora.adapted(read_config(folder)):
        matrix = f"{name}.weight"
        wide = tensors[matrix] + lora.change(name, parameters)
        tensors[matrix] = wide.astype(np.float32)
    return tensors
