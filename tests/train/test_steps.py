"""Steps: what they compute, what they cost, and which parameters they reach."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen import nn
from kerngen.runtime import f32
from kerngen.train import Trainer
from kerngen.train.optimizers import Name

from .networks import initial, take_step
from .optimizers import (
    ADAMW,
    CASES,
    Case,
    InNumPy,
    check_settings_by_name,
    check_steps,
    each_optimizer,
    many,
)


@pytest.fixture
def small() -> Iterator[gpu.Context]:
    """A context whose largest tensor has 256 elements, four times the alignment."""
    limits = {**gpu.WEBGPU_LIMITS, "max-storage-buffer-binding-size": 1024}
    with gpu.open(adapter="software", limits=limits) as ctx:
        yield ctx


def steps_of(ctx: gpu.Context, count: int) -> gpu.Counters:
    """What a clipped step costs with so many parameters, once all is compiled."""
    trainer = Trainer(ctx, many(count))
    done = gpu.Counters()
    for _ in range(2):
        before = ctx.counters.snapshot()
        trainer.clip_gradients(1.0)
        trainer.adamw_step(lr=1e-3)
        done = ctx.counters - before
    return done


def test_a_step_costs_the_same_however_many_parameters(ctx: gpu.Context) -> None:
    """The norm of up to 4096 numbers takes a dispatch less."""
    costs = [steps_of(ctx, count) for count in (2, 90)]
    assert [c.dispatches for c in costs] == [5, 6]
    assert [(c.submits, c.copies, c.uploads, c.readbacks) for c in costs] == [
        (1, 0, 0, 0)
    ] * 2


def test_nothing_is_read_back_in_a_step(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, initial())
    norm = take_step(trainer)
    norm = take_step(trainer)
    before = ctx.counters.snapshot()
    for _ in range(5):
        norm = take_step(trainer)
    done = ctx.counters - before
    assert done.readbacks == 0
    assert done.submits >= 5  # more if the device had nothing to do
    assert done.pipelines_created == done.buffers_created == 0
    assert norm.item() > 0


@each_optimizer
def test_steps_are_those_of_the_optimizer(ctx: gpu.Context, case: Case) -> None:
    check_steps(ctx, 0.5, InNumPy, case)


@pytest.mark.parametrize("case", [ADAMW, CASES[-2]], ids=str)
def test_steps_over_several_segments(small: gpu.Context, case: Case) -> None:
    trainer = check_steps(small, 1e9, InNumPy, case)
    assert len({tensor.lease for tensor in trainer.gradients.values()}) > 3


def test_the_norm_is_that_before_clipping_and_stays_on_the_device(
    ctx: gpu.Context,
) -> None:
    trainer = Trainer(ctx, {"a": np.zeros(3), "b": np.zeros((2, 2))})
    trainer.gradients["a"].copy_from([0.0, 3.0, 0.0])
    trainer.gradients["b"].copy_from([[0.0, 0.0], [0.0, 4.0]])
    norm = trainer.clip_gradients(1.0)
    assert norm.shape == ()
    assert norm.item() == 5.0
    assert trainer.gradient_norm().item() == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(trainer.gradients["a"].numpy(), [0, 0.6, 0], rtol=1e-6)


def test_some_parameters_can_be_left_out(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, many(5))
    before = {name: tensor.numpy() for name, tensor in trainer.tensors.items()}
    for name in trainer.gradients:
        ones = np.ones(trainer.gradients[name].shape, np.float32)
        trainer.gradients[name].copy_from(ones)
    trainer.adamw_step(lr=0.1, parameters=["p4", "p1", "p2"])
    for name, tensor in trainer.tensors.items():
        changed = not np.array_equal(tensor.numpy(), before[name])
        assert changed == (name in {"p1", "p2", "p4"})
    assert trainer.step_count == 1


def test_settings_by_name(ctx: gpu.Context) -> None:
    trainer = check_settings_by_name(ctx, InNumPy, ADAMW)
    assert trainer.step_count == 5
    with pytest.raises(gpu.UnknownNameError, match="weight_decay: no parameter is"):
        trainer.adamw_step(lr=0.1, weight_decay={"p0": 0.0})


def test_parameters_without_influence_cost_one_copy(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, many(30))
    costs: list[gpu.Counters] = []
    for _ in range(2):
        loss = nn.mean(trainer.parameters["p0"])
        before = ctx.counters.snapshot()
        trainer.backward(loss)
        costs.append(ctx.counters - before)
    assert (costs[1].copies, costs[1].uploads) == (1, 0)


def test_products_larger_than_the_adapter_binds(small: gpu.Context) -> None:
    rng = np.random.default_rng(0)
    for m, k, n in ((3, 40, 20), (1, 40, 20), (5, 7, 50)):
        a, b, dc = (rng.normal(size=s) for s in ((m, k), (k, n), (m, n)))
        trainer = Trainer(small, {"unused": np.zeros(1)})
        given, weight = small.matrix(a, f32), small.matrix(b, f32)
        assert weight.nbytes > small.max_tensor_bytes
        before = small.counters.snapshot()
        c = trainer.matmul_forward(given, weight)
        da, db = trainer.matmul_backward(given, weight, small.matrix(dc, f32))
        done = small.counters - before
        assert (done.readbacks, done.uploads) == (0, 1)
        np.testing.assert_allclose(c.numpy(), a @ b, atol=2e-5)
        np.testing.assert_allclose(da.numpy(), dc @ b.T, atol=2e-5)
        np.testing.assert_allclose(db.numpy(), a.T @ dc, atol=2e-5)


def test_neighbours_are_updated_by_one_dispatch(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, many(6))
    costs: list[int] = []
    for names in (["p1", "p2", "p3"], ["p1", "p3"]):
        before = ctx.counters.snapshot()
        trainer.adamw_step(lr=0.1, parameters=names)
        costs.append((ctx.counters - before).calls)
    assert costs == [3, 5]


def test_all_parameters_share_the_count_of_steps(ctx: gpu.Context) -> None:
    """With a bias correction for each, the second would move as at step 2."""
    trainer = Trainer(ctx, {"a": np.zeros(4), "b": np.zeros(4)})
    for gradient in trainer.gradients.values():
        gradient.copy_from(np.full(4, 0.5, np.float32))
    trainer.adamw_step(lr=0.1, weight_decay=0.0)
    for tensor in trainer.tensors.values():
        np.testing.assert_allclose(tensor.numpy(), -0.1, rtol=1e-6)
    assert trainer.step_count == 1


def test_products_and_their_gradients(ctx: gpu.Context) -> None:
    rng = np.random.default_rng(0)
    a, b, dc = (rng.normal(size=s) for s in ((5, 7), (7, 3), (5, 3)))
    trainer = Trainer(ctx, {"b": b})
    given = ctx.matrix(a, f32)
    c = trainer.matmul_forward(given, trainer.tensors["b"])
    upstream = ctx.matrix(dc, f32)
    before = ctx.counters.snapshot()
    da, db = trainer.matmul_backward(
        given, trainer.tensors["b"], upstream, out=(None, trainer.gradients["b"])
    )
    done = ctx.counters - before
    assert (done.calls, done.dispatches) == (2, 2)
    assert (done.readbacks, done.copies) == (0, 0)
    np.testing.assert_allclose(c.numpy(), a @ b, atol=1e-5)
    np.testing.assert_allclose(da.numpy(), dc @ b.T, atol=1e-5)
    np.testing.assert_allclose(trainer.gradients["b"].numpy(), a.T @ dc, atol=1e-5)
    assert db is trainer.gradients["b"]


def test_reset_starts_over(ctx: gpu.Context) -> None:
    trainer, other = Trainer(ctx, initial()), Trainer(ctx, initial(1))
    for _ in range(3):
        take_step(other)
    other.reset()
    assert other.step_count == 0
    for name, tensor in other.tensors.items():
        tensor.copy_from(trainer.tensors[name])
    take_step(trainer)
    take_step(other)
    for name, array in trainer.state().items():
        np.testing.assert_array_equal(other.state()[name], array)


def test_a_trainer_on_a_device_of_the_callers(ctx: gpu.Context) -> None:
    device = ctx.device
    with gpu.open(device=device) as shared:
        trainer = Trainer(shared, initial())
        take_step(trainer)
        assert trainer.state()["step"] == 1


def test_a_trainer_is_of_one_optimizer(ctx: gpu.Context) -> None:
    with pytest.raises(gpu.UnknownNameError, match=r"no optimizer is called 'adamx'"):
        Trainer(ctx, {"a": np.zeros(2)}, optimizer=cast("Name", "adamx"))
    trainer = Trainer(ctx, {"a": np.zeros(2)}, optimizer="lion")
    with pytest.raises(
        gpu.StateError, match=r'adam_step: .* for lion_step\. .* optimizer="adam"\)'
    ):
        trainer.adam_step(lr=0.1)
    with pytest.raises(gpu.StateError, match="lion_step keeps no 'v'"):
        _ = trainer.v
    with pytest.raises(gpu.UniformRangeError, match=r"lion_step: beta2 is 1\.0"):
        trainer.lion_step(lr=0.1, beta2=1.0)
    assert list(trainer.state()) == ["step", "parameters.a", "m.a"]


def test_training_without_an_adapter() -> None:
    """The reference computes in f32, too, but in its own order."""
    with gpu.open(adapter="reference") as reference:
        trainer = Trainer(reference, initial())
        assert take_step(trainer).item() > 0
        assert trainer.step_count == 1


@pytest.mark.parametrize(
    ("lr", "beta1", "decay", "says"),
    [
        (-1.0, 0.9, 0.0, "lr is -1.0; expected at least 0, and finite"),
        (math.nan, 0.9, 0.0, "lr is nan"),
        (0.1, 1.0, 0.0, "beta1 is 1.0; expected at least 0, and below 1"),
        (0.1, 0.9, math.inf, "weight_decay is inf"),
    ],
)
def test_settings_out_of_range(
    ctx: gpu.Context, lr: float, beta1: float, decay: float, says: str
) -> None:
    trainer = Trainer(ctx, {"a": np.zeros(2)})
    with pytest.raises(gpu.UniformRangeError, match=says):
        trainer.adamw_step(lr=lr, beta1=beta1, weight_decay=decay)
    assert trainer.step_count == 0


def test_names_shapes_and_types_that_are_wrong(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, initial())
    with pytest.raises(gpu.UnknownNameError, match=r"Did you mean 'hidden\.bias'"):
        _ = trainer.tensors["hiden.bias"]
    with pytest.raises(gpu.UnknownNameError, match="no parameter is called 'nothing'"):
        trainer.adamw_step(lr=0.1, parameters=["nothing"])
    with pytest.raises(gpu.UniformRangeError, match="max_norm is -1"):
        trainer.clip_gradients(-1.0)
    with pytest.raises(gpu.ContextError, match="Trainer: expected a context"):
        Trainer(cast("gpu.Context", None), {"a": np.zeros(2)})
    with pytest.raises(gpu.ShapeError, match="the mapping is empty"):
        Trainer(ctx, {})
    with pytest.raises(gpu.DtypeError, match="'a': An array of complex128"):
        Trainer(ctx, {"a": np.zeros(2, complex)})
    with pytest.raises(gpu.ShapeError, match="'a': "):
        Trainer(ctx, {"a": [[1.0], [1.0, 2.0]]})
    with pytest.raises(gpu.DtypeError, match=r"'a': .*beyond the range of f32"):
        Trainer(ctx, {"a": np.array([1e300])})
    with pytest.raises(gpu.DtypeError, match="can't be written to a file"):
        Trainer(ctx, {"\udc80": np.zeros(2)})
    with pytest.raises(
        gpu.DtypeError, match="a mapping from names to arrays, got a list"
    ):
        Trainer(ctx, cast("dict[str, float]", [1.0]))


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"lr": None}, gpu.DtypeError, "adamw_step: scalar argument 'lr'"),
        ({"lr": 1e39}, gpu.UniformRangeError, "'lr'"),
        (
            {"lr": 0.1, "eps": 0.0},
            gpu.UniformRangeError,
            "eps is 0.0; expected at least",
        ),
        ({"lr": 0.1, "eps": 1e-60}, gpu.UniformRangeError, "eps is 1e-60"),
        ({"lr": 0.1, "parameters": []}, gpu.ShapeError, "is an empty list"),
        ({"lr": 0.1, "parameters": "ab"}, gpu.DtypeError, "'ab'; expected a list"),
        (
            {"lr": 0.1, "parameters": [["a"]]},
            gpu.DtypeError,
            "expected a list of names",
        ),
    ],
)
def test_settings_of_wrong_types(
    ctx: gpu.Context, settings: dict[str, Any], error: type[Exception], says: str
) -> None:
    trainer = Trainer(ctx, {"a": np.zeros(2), "b": np.zeros(2)})
    with pytest.raises(error, match=says):
        trainer.adamw_step(**settings)
    trainer.check()
    assert trainer.step_count == 0
