"""Keep Triton out of processes in which Mesa's llvmpipe runs.

PyTorch's builds for CUDA bring Triton, which torch.optim imports if it is there.  Triton and
llvmpipe have an LLVM each, and a process that loads both crashes.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import cast


def hide_triton() -> None:
    """Make Triton look absent, which PyTorch takes well; nothing here compiles by it."""
    sys.modules.setdefault("triton", cast("ModuleType", None))
