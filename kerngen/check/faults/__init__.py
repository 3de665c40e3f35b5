"""The checker's diagnostics: a class for each code, in modules by the hundreds of the codes.

The checker calls all of them `diag`: `diag.UnknownName(span=..., remedy=...)`.
"""

from kerngen.check.faults.indices import *
from kerngen.check.faults.names import *
from kerngen.check.faults.schedules import *
from kerngen.check.faults.statements import *
from kerngen.check.faults.structs import *
from kerngen.check.faults.types import *
