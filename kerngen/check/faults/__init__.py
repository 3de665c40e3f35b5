"""The checker's diagnostics: one class each, grouped by the hundreds of their codes.

The checker calls all of them `diag`: `diag.UnknownName(span=..., remedy=...)`.
"""

from kerngen.check.faults.indices import *
from kerngen.check.faults.names import *
from kerngen.check.faults.schedules import *
from kerngen.check.faults.statements import *
from kerngen.check.faults.structs import *
from kerngen.check.faults.types import *
