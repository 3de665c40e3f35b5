"""From typed kernels and their plans to ES modules: `.js`, and `.d.ts` with their types."""

from kerngen.typescript.declarations import emit_declarations
from kerngen.typescript.module import emit_module

__all__ = ["emit_declarations", "emit_module"]
