"""Arrays of other libraries, nested lists and masks: taken, or refused with advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.batch import Batch
from kerngen.matmul_cache import MatmulCache
from kerngen.runtime import Context, DtypeError, ShapeError, f32
from tests.runtime.structs import Particle

MASKED: Any = np.ma.masked_equal([[1.0, 2.0], [3.0, 4.0]], 3.0)
PLAIN: Any = np.ma.masked_equal([[1.0, 2.0], [3.0, 4.0]], 7.0)


def torch() -> Any:
    """Import PyTorch, which is there for tests that are marked."""
    return import_module("torch")


REFUSED: Mapping[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "ragged": (
        lambda: [[1, 2], [3]],
        ShapeError,
        r"No array can be made of a list; .*one length.*\(2,\)",
    ),
    "parameter": (
        lambda: torch().nn.Parameter(torch().ones(2, 2)),
        DtypeError,
        r"No array can be made of a torch.Parameter: .*tensor\.detach\(\)\.cpu\(\)",
    ),
    "bfloat16": (
        lambda: torch().ones(2, 2, dtype=torch().bfloat16),
        DtypeError,
        r"BFloat16\. Of a PyTorch tensor, .*\.float\(\) .* bfloat16",
    ),
    "masked": (
        lambda: MASKED,
        DtypeError,
        r"a numpy.MaskedArray are masked.*array\.filled\(",
    ),
    "masked rows": (lambda: [*MASKED], DtypeError, "of a list are masked"),
    "a masked number": (
        lambda: [[1.0, np.ma.masked]],
        DtypeError,
        "of a list are masked",
    ),
}

OF_TORCH = "parameter", "bfloat16"

WHAT = [
    pytest.param(what, marks=[pytest.mark.torch] if what in OF_TORCH else [])
    for what in REFUSED
]

Use = Callable[[Context, Any], object]

USES: Mapping[str, Use] = {
    "tensor": lambda ctx, values: ctx.tensor(values),
    "matrix": lambda ctx, values: ctx.matrix(values, f32),
    "copy": lambda ctx, values: ctx.zeros((2, 2), f32).copy_from(values),
    "batch": lambda ctx, values: Batch(ctx).upload(values),
    "weight": lambda ctx, values: MatmulCache(ctx).upload_weight("w", values),
}


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("use", USES)
def test_what_forms_no_array(ctx: Context, use: str, what: str) -> None:
    make, error, text = REFUSED[what]
    values = make()
    with pytest.raises(error, match=text):
        USES[use](ctx, values)


@pytest.mark.parametrize("what", WHAT)
def test_a_cache_says_of_what_it_speaks(ctx: Context, what: str) -> None:
    cache = MatmulCache(ctx)
    cache.upload_weight("w", np.ones((2, 2)))
    make, error, text = REFUSED[what]
    values = make()
    with pytest.raises(error, match=f"MatmulCache: weight 'v': .*{text}"):
        cache.upload_weight("v", values)
    with pytest.raises(error, match=f"MatmulCache: x: .*{text}"):
        cache.matmul("w", values)


@pytest.mark.parametrize(
    "values",
    [PLAIN, [*PLAIN], ((1, 2), [3, 4])],
    ids=["nothing masked", "rows", "nested"],
)
@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_what_numpy_takes_is_taken(ctx: Context, values: Any) -> None:
    for tensor in (ctx.matrix(values, f32), ctx.tensor(values, f32)):
        np.testing.assert_array_equal(tensor.numpy(), [[1, 2], [3, 4]])


@pytest.mark.torch
def test_a_tensor_of_torch_is_taken(ctx: Context) -> None:
    values = torch().tensor([[1.0, 2.0], [3.0, 4.0]])
    for tensor in (ctx.matrix(values, f32), ctx.tensor(values, f32)):
        np.testing.assert_array_equal(tensor.numpy(), [[1, 2], [3, 4]])


# A masked array fills float16 with 1e20, says NumPy.
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_records_with_masked_fields(ctx: Context) -> None:
    records = np.ma.zeros(3, Particle.DTYPE)
    assert ctx.vector(records, Particle).shape == (3,)
    records[1] = np.ma.masked
    with pytest.raises(DtypeError, match="are masked"):
        ctx.vector(records, Particle)


def test_errors_of_a_tensor_that_cannot_be_read_stay_what_they_are(
    ctx: Context,
) -> None:
    other = gpu.open(adapter="reference")
    tensor: Any = other.vector([1.0], f32)
    other.close()
    with pytest.raises(gpu.ContextError, match="closed"):
        ctx.vector(tensor, f32)
