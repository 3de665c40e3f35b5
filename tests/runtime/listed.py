"""Which adapters wgpu lists."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest


def adapters(monkeypatch: pytest.MonkeyPatch, *wanted: str) -> None:
    """Let wgpu list only adapters of these types."""
    wgpu: Any = import_module("wgpu")
    found = wgpu.gpu.enumerate_adapters_sync()
    kept = [a for a in found if a.info["adapter_type"] in wanted]

    def listed(_gpu: object) -> list[Any]:
        return kept

    name = f"{type(wgpu.gpu).__module__}.GPU.enumerate_adapters_sync"
    monkeypatch.setattr(name, listed)
