"""Numbers that the tests of verify's arithmetic share."""

from __future__ import annotations

from typing import Final

import numpy as np

U: Final = 2.0**-23
"""The distance from 1 to the next f32."""

TOP: Final = float(np.finfo(np.float32).max)
INF: Final = np.inf
