"""Ask Tint, Chromium's WGSL compiler, what it thinks of shaders.

Run as a script: it reads shaders from standard input, each a line of JSON, and answers
each with a line: Tint's message, or null.  It is a process of its own since it loads
Dawn beside nothing else that drives the GPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from threading import Timer
from typing import Final

ANSWER: Final = "tint: "
PATIENCE: Final = 120
"""Seconds until a Dawn that does not answer is ended; it takes milliseconds."""


class Tint:
    """A long-lived process that judges shaders."""

    def __init__(self) -> None:
        """Start Dawn; that takes a second."""
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def refuses(self, shader: str) -> str:
        """Return Tint's message about a shader; nothing if it accepts it."""
        # pydawn hands over as many bytes as there are characters.
        shader += " " * (len(shader.encode()) - len(shader))
        end = Timer(PATIENCE, self._process.kill)
        end.start()
        try:
            message: str | None = json.loads(self._answer_to(json.dumps(shader)))
        finally:
            end.cancel()
        return message or ""

    def _answer_to(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        while not (line := self._process.stdout.readline()).startswith(ANSWER):
            assert line, f"Dawn did not start, or stopped, or hung for {PATIENCE} s."
        return line.removeprefix(ANSWER)

    def close(self) -> None:
        """Stop the process, whatever it does."""
        with self._process:
            self._process.kill()


def refused(shaders: Iterable[Path]) -> dict[str, str]:
    """Return Tint's message for each shader that it refuses."""
    tint = Tint()
    try:
        texts = {str(path): path.read_text(encoding="utf-8") for path in shaders}
        messages = {path: tint.refuses(text) for path, text in texts.items()}
    finally:
        tint.close()
    return {path: message for path, message in messages.items() if message}


def main() -> None:
    """Judge the shaders that come on standard input."""
    utils, webgpu = import_module("pydawn.utils"), import_module("pydawn.webgpu")
    adapter = utils.request_adapter_sync(webgpu.WGPUPowerPreference_HighPerformance)
    features = [webgpu.WGPUFeatureName_ShaderF16, webgpu.WGPUFeatureName_Subgroups]
    device = utils.request_device_sync(adapter, features)
    for line in sys.stdin:
        answer = None
        try:
            module = utils.create_shader_module(device, json.loads(line))
            webgpu.wgpuShaderModuleRelease(module)
        except RuntimeError as error:
            answer = str(error)
        # Dawn and its driver may have begun a line of their own.
        sys.stdout.write(f"\n{ANSWER}{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
