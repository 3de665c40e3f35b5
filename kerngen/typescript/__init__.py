"""The JavaScript output: ES modules, and `.d.ts` files with their types."""

from kerngen.typescript.declarations import emit_declarations
from kerngen.typescript.module import emit_module

__all__ = ["emit_declarations", "emit_module"]
