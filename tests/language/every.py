"""All kernels with their meaning in NumPy."""

from __future__ import annotations

from tests.language.cases import CASES
from tests.language.conditional import CONDITIONAL
from tests.language.halves import HALVES
from tests.language.narrow import NARROW
from tests.language.places import PLACES
from tests.language.products import PRODUCTS
from tests.language.stores import STORES
from tests.language.windows import WINDOWS

EVERY = (
    *CASES,
    *HALVES,
    *PRODUCTS,
    *WINDOWS,
    *CONDITIONAL,
    *STORES,
    *PLACES,
    *NARROW,
)
