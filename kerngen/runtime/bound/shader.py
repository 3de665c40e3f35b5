"""The WGSL file of a module that `kerngen bind` generated: `wgsl/<module>/<name>`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, final

from kerngen.runtime.device.gpu import GPUDevice
from kerngen.runtime.errors import AbiError
from kerngen.runtime.shipping import require_shaders
from kerngen.runtime.stamp import stamp_of


@final
@dataclass(frozen=True, eq=False)
class Shader:
    """A WGSL file: its name, and the text that the module was generated from."""

    name: str
    code: str = field(repr=False)

    @classmethod
    def of(cls, module: str, file: str, name: str) -> Shader:
        """Read the WGSL file `name` that lies beside the generated module `module` in `file`.

        Raises:
            AbiError: If it is missing, or not the one that the module was made of.
        """
        folder = Path(file).with_name("wgsl") / Path(file).stem
        require_shaders(module, folder)
        try:
            code = (folder / name).read_bytes()
        except OSError as error:
            raise AbiError(
                f"Module '{module}': its shader {folder / name} can't be read "
                f"({error.strerror}). Run 'kerngen bind' again."
            ) from None
        # The module's docstring has the first digits of the text's hash.
        stamp = stamp_of(getattr(sys.modules.get(module), "__doc__", None) or "")
        if not sha256(code).hexdigest().startswith(stamp):
            raise AbiError(
                f"Module '{module}' was made of another text of {folder / name}. Run "
                f"'kerngen bind' again."
            )
        return cls(name, code.decode("utf-8-sig"))

    def module(self, device: GPUDevice) -> Any:
        """Return a new `wgpu.GPUShaderModule` of the file."""
        return device.create_shader_module(label=self.name, code=self.code)
