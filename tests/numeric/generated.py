"""Compile a kernel's text and import what came out."""

from __future__ import annotations

import importlib.util
import sys
from itertools import count
from pathlib import Path

from kerngen.runtime.kernel import Kernel

_numbers = count()


def build_kernel(text: str, folder: Path) -> Kernel:
    """Build a source with one kernel into `folder`; return its description."""
    raise NotImplementedError
