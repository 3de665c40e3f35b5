"""Ask Tint, Chromium's WGSL compiler, what it thinks of shaders.

Run as a script: it reads paths from standard input, one a line, and prints one JSON
object, from the path of each refused shader to Tint's message.  It is a process of its
own since it loads Dawn beside nothing else that drives the GPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path


def refused(shaders: Iterable[Path]) -> dict[str, str]:
    """Return Tint's message for each shader that it refuses."""
    listed = "\n".join(str(path) for path in shaders)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__],
        input=listed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"Dawn did not start:\n{done.stderr}"
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Judge the shaders named on standard input."""
    utils, webgpu = import_module("pydawn.utils"), import_module("pydawn.webgpu")
    adapter = utils.request_adapter_sync(webgpu.WGPUPowerPreference_HighPerformance)
    device = utils.request_device_sync(adapter, [])
    found: dict[str, str] = {}
    for path in sys.stdin.read().splitlines():
        try:
            utils.create_shader_module(device, Path(path).read_text(encoding="utf-8"))
        except RuntimeError as error:
            found[path] = str(error)
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
