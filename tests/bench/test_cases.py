"""What cases cost at the least, against figures that are known from elsewhere."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import cast

import numpy as np
import pytest

from kerngen.bench.arguments import (
    Integers,
    inputs,
    random_tensor,
    rotations,
    row_starts,
    sets,
)
from kerngen.bench.case import Unit
from kerngen.bench.choose import UnknownKernelError, named, suite
from kerngen.bench.peers import asked_for
from kerngen.bench.peers import numpy as numpy_peer
from kerngen.bench.peers import torch as torch_peer
from kerngen.bench.standard import STANDARD
from kerngen.bench.system_sizes import STEP, step_lengths
from kerngen.runtime import Context, f16, f32, u32
from kerngen.runtime.calls.choices import kernel_of
from kerngen_kernels import statistics
from kerngen_kernels.optim import adamw
from kerngen_kernels.softmax import softmax

MIB = 2**20


@pytest.mark.parametrize(
    ("name", "sizes", "moved", "operations"),
    [
        ("matmul_nt", {"m": 2, "k": 3, "n": 5}, 4 * (6 + 15 + 10), 60),
        ("half.gemv", {"n": 8, "k": 4}, 2 * 32 + 4 * 4 + 4 * 8, 64),
        ("adamw", {"n": 1000}, 28_000, 15_000),
        ("softmax", {"m": 7, "n": 9}, 8 * 63, 5 * 63),
        ("sum", {"n": 1000}, 4004, 1000),
        (
            "causal_attention",
            {"b": 1, "h": 2, "s": 3, "d": 4, "t": 5, "e": 6},
            4 * 2 * (3 * 4 + 5 * 4 + 5 * 6 + 3 * 6),
            2 * 2 * (4 + 6) * (3 + 4 + 5),
        ),
        ("relu", {"n": 1000}, 8000, 0),
        ("elementwise.add_rows", {"m": 3, "n": 5}, 4 * (15 + 5 + 15), 0),
    ],
)
def test_bytes_and_operations(
    name: str, sizes: dict[str, int], moved: int, operations: int
) -> None:
    (case,) = named(name, (sizes,), "software")
    assert (case.bytes, case.operations) == (moved, operations)
    assert case.sizes == sizes


def test_a_network_moves_its_weights_once() -> None:
    small, large = (c for c in suite("gpu", quick=False) if c.name == "feed-forward")
    weights = 36 * 3 * 2560 * 9728
    assert 4 * weights < small.bytes < 4.02 * weights
    assert (small.unit, large.unit) == (Unit.BYTES, Unit.OPERATIONS)
    assert large.operations == 2 * 512 * weights


def test_a_step_takes_its_sizes_by_name() -> None:
    sizes = {"longest": 4, "tensors": 3, "shortest": 16}
    (case,) = named("clip and AdamW", (sizes,), "software")
    assert (case.bytes, case.largest) == (40 * (16 + 8 + 4), 64)
    assert step_lengths(sizes) == [16, 8, 4]


def test_products_of_many_rows_are_told_by_their_operations() -> None:
    units = {
        case.sizes["m"]: case.unit
        for case in suite("gpu", quick=False)
        if case.name == "matmul_nt" and case.sizes["k"] == case.sizes["n"] == 4096
    }
    assert units[8] is Unit.BYTES
    assert units[64] is units[4096] is Unit.OPERATIONS


def test_every_kernel_of_the_suite_has_a_twin_in_torch() -> None:
    paths = {standard.path for standard in STANDARD}
    peer = torch_peer
    tables = peer.TWINS, peer.KEYED, peer.BACKWARD, peer.CONVOLVED
    twins = {path for table in tables for path in table} | {peer.SPARSE}
    # AdamW is a peer of its own; PyTorch has no recurrences but those of its RNNs.
    alone = {"optim.adamw", "recurrence.ema", "recurrence.selective_scan"}
    assert paths - twins == alone
    assert numpy_peer.TWINS.keys() < paths


def test_torch_asked_for_on_a_gpu_runs_compiled_too() -> None:
    assert asked_for(["torch", "numpy"], "gpu") == ["torch", "numpy", "torch_compile"]
    assert asked_for(["torch"], "software") == ["torch"]
    compiled = list[object]()

    def compile_(function: object, *, dynamic: bool) -> object:
        compiled.append((function, dynamic))
        return function

    def random(shape: list[int], device: str) -> object:
        return shape, device

    def softmax(x: object, axis: int) -> None:
        compiled.append((x, axis))

    made = SimpleNamespace(
        __version__="2",
        backends=SimpleNamespace(
            cuda=SimpleNamespace(matmul=SimpleNamespace()), cudnn=SimpleNamespace()
        ),
        compiler=SimpleNamespace(reset=lambda: compiled.append("reset")),
        compile=compile_,
        rand=random,
        softmax=softmax,
    )
    peer = torch_peer.Torch(cast("ModuleType", made), "cpu", compiled=True)
    assert peer.name == "torch.compile (CPU)"
    (case,) = named("softmax", ({"m": 3, "n": 5},), "software")
    with peer.clock(case) as clock:
        assert clock is not None
        clock(1)
    assert compiled[0] == "reset"
    assert compiled[-1] == (([3, 5], "cpu"), -1)
    with peer.clock(replace(case, twin=STEP)) as clock:
        assert clock is None


def test_small_sizes_fit_every_adapter() -> None:
    assert all(case.largest <= 128 * MIB for case in suite("software", quick=False))
    assert len([*suite("software", quick=True)]) == len(STANDARD)


def test_names_that_no_kernel_has_are_refused() -> None:
    with pytest.raises(UnknownKernelError, match="Did you mean 'softmax'"):
        next(named("sofmax", (), "gpu"))
    with pytest.raises(UnknownKernelError, match=r"elementwise\.scale, half\.scale"):
        next(named("scale", (), "gpu"))
    with pytest.raises(KeyError, match="k"):
        next(named("matmul_nn", ({"m": 1},), "gpu"))


def test_inputs_are_rotated_out_of_the_caches() -> None:
    assert rotations(1, "gpu") == 64
    assert rotations(64 * MIB, "gpu") == 5
    assert rotations(1024 * MIB, "gpu") == 1


def test_calls_read_inputs_of_their_own_and_write_the_same(ctx: Context) -> None:
    (x, made), (other, same), *_ = sets(ctx, kernel_of(softmax), {"m": 3, "n": 5})
    assert made == same
    assert x[0].numpy().tolist() != other[0].numpy().tolist()
    (first, none), (second, _), *_ = sets(ctx, kernel_of(adamw), {"n": 5})
    assert not none
    shared = [a is b for a, b in zip(first, second, strict=True)]
    assert shared == [spec.access == "update" for spec in kernel_of(adamw).inputs]
    assert {*shared} == {True, False}


def test_inputs_alone_fill_what_is_rotated() -> None:
    (case,) = named("matmul_nn", ({"m": 2048, "k": 64, "n": 2048},), "gpu")
    assert case.rotated == 4 * 2 * 2048 * 64
    (sort,) = named("sort", ({"n": 64},), "gpu")
    assert sort.rotated == sort.bytes


def test_keys_are_those_of_the_bins(ctx: Context) -> None:
    kernel = kernel_of(statistics.bincount)
    (keys,) = inputs(ctx, kernel, {"n": 300, "bins": 7}, 1, Integers("bins"))
    assert {*keys.numpy()} == {*range(7)}


def test_one_row_of_a_sparse_matrix_has_many_entries() -> None:
    lengths = np.diff(row_starts(20_000, 320_000, 1).astype(int))
    assert (lengths.sum(), lengths.min() >= 0) == (320_000, True)
    assert lengths.argmax() == 10_000
    assert lengths.max() >= 320_000 // 512


def test_random_numbers_suit_the_elements(ctx: Context) -> None:
    drawn = random_tensor(ctx, f32, (100, 100), 1).numpy()
    assert 0 <= drawn.min() < 0.01
    assert 0.99 < drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.02
    halves = random_tensor(ctx, f16, (100,), 1).numpy()
    assert halves.dtype == np.float16
    assert len({*halves}) > 50
    whole = random_tensor(ctx, u32, (100,), 1, bound=7).numpy()
    assert {*whole} == {*range(7)}
