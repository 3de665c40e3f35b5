"""Writes to every scalar of random structs: each lands where we say, and nowhere else."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from kerngen.ir.memory import Struct
from kerngen.layout.struct import struct_layout
from tests.budget import examples

from .drawn import Drawing, count
from .judged import Judges
from .probe import bytes_for


def test_writes_touch_their_own_bytes_alone(judges: Judges) -> None:
    @seed(0)
    @settings(
        max_examples=examples(50),
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        Drawing(halves=judges.bench.has_halves, uniform=False).structs(),
        st.integers(0, 2**32 - 1),
    )
    def write(struct: Struct, number: int) -> None:
        rng = np.random.default_rng(number)
        laid = struct_layout(struct)
        bits = rng.integers(0, 256, 4 * count(struct), np.uint8)
        judges.bench.check_writes(laid, bytes_for(laid, rng), bits)

    write()
