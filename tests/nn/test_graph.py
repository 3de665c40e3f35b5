"""The walk from a loss to its parameters, and what is said when there is none."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen import nn
from kerngen.runtime import f32, u32
from kerngen.train import Trainer
from tests.train.networks import lost


def wrong(tensor: object) -> Any:
    """Hide a tensor's type, which a type checker would refuse."""
    return tensor


@pytest.fixture
def trainer(ctx: gpu.Context) -> Trainer:
    return Trainer(ctx, {"w": np.ones((3, 4)), "b": np.zeros(3), "unused": np.ones(2)})


def loss_of(trainer: Trainer) -> nn.Variable:
    p, ctx = trainer.parameters, trainer.ctx
    y = nn.linear(ctx.matrix(np.ones((2, 4)), f32), p["w"], p["b"])
    return nn.mean_squared_error(y, ctx.zeros((2, 3), f32))


def test_gradients_are_written_anew_or_added(trainer: Trainer) -> None:
    trainer.backward(loss_of(trainer))
    once = trainer.gradients["w"].numpy()
    trainer.backward(loss_of(trainer))
    np.testing.assert_array_equal(trainer.gradients["w"].numpy(), once)
    trainer.backward(loss_of(trainer), accumulate=True)
    np.testing.assert_array_equal(trainer.gradients["w"].numpy(), 2 * once)


def test_a_variable_is_neither_true_nor_false(trainer: Trainer) -> None:
    with pytest.raises(gpu.ArgumentError, match="'tensor is not None'"):
        bool(trainer.parameters["unused"])


def test_a_parameter_without_influence_has_no_gradient(trainer: Trainer) -> None:
    trainer.gradients["unused"].copy_from([7.0, 7.0])
    trainer.backward(loss_of(trainer), accumulate=True)
    np.testing.assert_array_equal(trainer.gradients["unused"].numpy(), [7.0, 7.0])
    trainer.backward(loss_of(trainer))
    np.testing.assert_array_equal(trainer.gradients["unused"].numpy(), [0.0, 0.0])


def test_a_graph_is_used_up(trainer: Trainer) -> None:
    loss = loss_of(trainer)
    trainer.backward(loss)
    with pytest.raises(nn.GraphError, match="Compute the loss again"):
        trainer.backward(loss)


def test_a_graph_of_which_a_part_is_used_up(trainer: Trainer) -> None:
    hidden = nn.tanh(trainer.parameters["w"])
    zeros = trainer.ctx.zeros((3, 4), f32)
    one, other = (nn.mean_squared_error(hidden, zeros) for _ in range(2))
    trainer.backward(one)
    with pytest.raises(nn.GraphError, match="used up"):
        trainer.backward(other)


def test_a_graph_that_is_used_up_changes_no_gradient(trainer: Trainer) -> None:
    hidden = nn.tanh(trainer.parameters["w"])
    zeros = trainer.ctx.zeros((3, 4), f32)
    trainer.backward(nn.mean_squared_error(hidden, zeros))
    b = nn.mean_squared_error(trainer.parameters["b"], trainer.ctx.zeros(3, f32))
    writes = trainer.gradients["b"].writes
    with pytest.raises(nn.GraphError, match="used up"):
        trainer.backward(nn.add(b, nn.mean_squared_error(hidden, zeros)))
    assert trainer.gradients["b"].writes == writes
    trainer.gradient_norm()


def test_weights_that_move_before_the_walk_back(trainer: Trainer) -> None:
    def compute() -> nn.Variable:
        w = trainer.parameters["w"]
        return nn.mean(nn.linear(nn.tanh(w), w))

    later = compute()
    trainer.backward(compute())
    trainer.adamw_step(lr=0.1)
    with pytest.raises(nn.GraphError, match="overwritten or lost since"):
        trainer.backward(later)
    trainer.backward(compute())


def test_inputs_that_change_before_the_walk_back(trainer: Trainer) -> None:
    x = trainer.ctx.matrix(np.ones((2, 4)), f32)
    loss = nn.mean(nn.linear(x, trainer.parameters["w"]))
    x.copy_from(np.zeros((2, 4)))
    with pytest.raises(nn.GraphError, match=r"f32\[2, 4\].* has been overwritten"):
        trainer.backward(loss)
    kept_by_none = nn.mean(nn.add(trainer.parameters["w"], trainer.ctx.zeros(4, f32)))
    trainer.adamw_step(lr=0.1)
    trainer.backward(kept_by_none)


def test_a_forward_that_was_lost(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, {"w": np.ones(3)})
    ctx.submit()
    with lost(ctx):
        loss = nn.mean(nn.tanh(trainer.parameters["w"]))
    with pytest.raises(nn.GraphError, match="overwritten or lost since"):
        trainer.backward(loss)


def test_what_no_gradient_reads_may_change(trainer: Trainer) -> None:
    w = trainer.parameters["w"]
    loss = nn.mean(nn.dropout(nn.scale(nn.add(w, w), 2.0), 0.5, seed=1))
    trainer.adamw_step(lr=0.1)
    trainer.backward(loss)


def test_gradients_may_not_stand_in_their_own_way(trainer: Trainer) -> None:
    p, g = trainer.parameters, trainer.gradients
    loss = nn.mean(nn.mul(p["w"], g["w"]))
    with pytest.raises(nn.GraphError, match="lies in a buffer of the gradients"):
        trainer.backward(loss)


def test_a_parameter_is_a_loss(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, {"a": 3.0})
    for accumulate, expected in ((False, 1), (False, 1), (True, 2)):
        trainer.backward(trainer.parameters["a"], accumulate=accumulate)
        assert trainer.gradients["a"].item() == expected


def test_a_trunk_of_another_trainer_may_be_used_up(ctx: gpu.Context) -> None:
    maker, critic = (Trainer(ctx, {"w": np.full(3, 2.0)}) for _ in range(2))
    fake = nn.tanh(maker.parameters["w"])
    losses = [nn.mean(nn.mul(fake, critic.parameters["w"])) for _ in range(2)]
    maker.backward(losses[0])
    critic.backward(losses[1])
    np.testing.assert_allclose(critic.gradients["w"].numpy(), np.tanh(2) / 3, rtol=1e-6)
    again = nn.mean(nn.mul(fake, critic.parameters["w"]))
    with pytest.raises(nn.GraphError, match="used up"):
        maker.backward(again)


def test_parameters_of_other_trainers_are_constants(ctx: gpu.Context) -> None:
    one, other = (Trainer(ctx, {"w": np.full(3, 2.0)}) for _ in range(2))
    other.gradients["w"].copy_from([7.0, 8.0, 9.0])
    product = nn.mul(one.parameters["w"], other.parameters["w"])
    one.backward(nn.mean(product))
    np.testing.assert_allclose(one.gradients["w"].numpy(), 2 / 3, rtol=1e-6)
    np.testing.assert_array_equal(other.gradients["w"].numpy(), [7.0, 8.0, 9.0])


def test_a_walk_to_some_parameters(trainer: Trainer) -> None:
    p = trainer.parameters
    trainer.clear_gradients()
    reached = nn.backward(loss_of(trainer), parameters=[p["b"]])
    assert reached == [p["b"]]
    assert not trainer.gradients["w"].numpy().any()
    assert trainer.gradients["b"].numpy().any()


def test_a_loss_without_parameters(trainer: Trainer) -> None:
    w = nn.tanh(trainer.tensors["w"])
    loss = nn.mean_squared_error(w, trainer.ctx.zeros((3, 4), f32))
    for nothing in (loss, loss.tensor):
        with pytest.raises(nn.GraphError, match="depends on no parameter whose"):
            trainer.backward(wrong(nothing))


def test_a_loss_of_another_trainer(trainer: Trainer, ctx: gpu.Context) -> None:
    other = Trainer(ctx, {"w": np.ones((3, 4)), "b": np.ones(3)})
    with pytest.raises(nn.GraphError, match="no parameter whose gradient is wanted"):
        trainer.backward(loss_of(other))


def test_a_loss_that_is_no_scalar(trainer: Trainer) -> None:
    with pytest.raises(gpu.ShapeError, match=r"scalar loss, got shape \(3, 4\)"):
        trainer.backward(nn.tanh(trainer.parameters["w"]))


def test_tensors_alone_leave_no_graph(trainer: Trainer) -> None:
    y = nn.linear(trainer.ctx.zeros((2, 4), f32), trainer.tensors["w"])
    assert not y.needs_gradient
    assert not y.edges


def test_the_walk_frees_what_the_graph_kept(trainer: Trainer) -> None:
    loss = loss_of(trainer)
    trainer.backward(loss)
    kept = [x for x in gc.get_referrers(loss) if isinstance(x, nn.Variable)]
    assert loss.edges == ()
    assert kept == []


def test_a_deep_graph_needs_no_deep_stack(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, {"x": np.ones(2)})
    value = trainer.parameters["x"]
    for _ in range(3000):
        value = nn.scale(value, 1.0)
    trainer.backward(nn.mean_squared_error(value, ctx.zeros(2, f32)))
    np.testing.assert_allclose(trainer.gradients["x"].numpy(), [1.0, 1.0])


def test_dropout_drops_the_same_places_both_ways(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, {"x": np.ones(4096)})
    y = nn.dropout(trainer.parameters["x"], 0.25, seed=3)
    kept = y.numpy()
    assert 0.7 < (kept > 0).mean() < 0.8
    trainer.backward(nn.mean_squared_error(y, ctx.zeros(4096, f32)))
    np.testing.assert_allclose(
        trainer.gradients["x"].numpy(), 2 * kept / 0.75 / 4096, rtol=1e-6
    )


MISUSE: list[tuple[Callable[[Trainer], object], type[Exception], str]] = [
    (
        lambda t: nn.attention(
            *(t.ctx.zeros((1, s, 6), f32) for s in (3, 2, 2)), heads=2, causal=True
        ),
        gpu.ShapeError,
        "q has 3 positions and k has 2; causal",
    ),
    (
        lambda t: nn.cross_entropy(t.ctx.zeros((), f32), [0]),
        gpu.ShapeError,
        "cross_entropy: the input is a scalar",
    ),
    (
        lambda t: nn.dropout(t.parameters["w"], 1.0, seed=0),
        gpu.UniformRangeError,
        r"dropout: the rate is 1\.0",
    ),
    (
        lambda t: nn.parameter(wrong(np.zeros(3)), t.ctx.zeros(3, f32)),
        gpu.DtypeError,
        "got a numpy.ndarray",
    ),
    (
        lambda t: t.backward(wrong(None)),
        gpu.DtypeError,
        "Expected a Variable or a Tensor, got None",
    ),
    (
        lambda t: nn.linear(t.ctx.zeros((2, 5), f32), t.parameters["w"]),
        gpu.ShapeError,
        r"linear: the input has shape \(2, 5\); expected its last axis to be 4",
    ),
    (
        lambda t: nn.linear(
            t.ctx.zeros((2, 4), f32), t.parameters["w"], t.parameters["w"]
        ),
        gpu.ShapeError,
        r"linear: the bias has shape \(3, 4\); expected \(3,\)",
    ),
    (
        lambda t: nn.linear(t.ctx.zeros((2, 4), f32), t.parameters["b"]),
        gpu.ShapeError,
        r"linear: the weight has shape \(3,\) \(rank 1\); expected \[n, k\]",
    ),
    (
        lambda t: nn.matmul(t.parameters["w"], t.parameters["w"]),
        gpu.ShapeError,
        r"matmul: .*expected its last axis to be 3",
    ),
    (
        lambda t: nn.add(t.parameters["b"], t.parameters["w"]),
        gpu.ShapeError,
        r"add: the shapes \(3,\) and \(3, 4\) don't fit",
    ),
    (
        lambda t: nn.mul(t.parameters["b"], t.parameters["w"]),
        gpu.ShapeError,
        "mul: the shapes .* differ",
    ),
    (
        lambda t: nn.layernorm(t.parameters["w"], t.parameters["b"], t.parameters["b"]),
        gpu.ShapeError,
        "layernorm: the input has shape",
    ),
    (
        lambda t: nn.softmax(t.ctx.zeros((), f32)),
        gpu.ShapeError,
        "softmax: the input is a scalar",
    ),
    (
        lambda t: nn.attention(
            *(t.ctx.zeros((1, 2, 6), f32) for _ in range(3)), heads=4
        ),
        gpu.ShapeError,
        "expected a last axis that 4 heads divide",
    ),
    (
        lambda t: nn.embedding(t.parameters["w"], np.array([0, 3])),
        gpu.UniformRangeError,
        r"embedding: the number at \(1,\) is 3; expected 0 to 2",
    ),
    (
        lambda t: nn.embedding(t.parameters["w"], np.array([0.5])),
        gpu.DtypeError,
        "embedding: expected integers, got float64",
    ),
    (
        lambda t: nn.embedding(t.parameters["w"], wrong(t.ctx.zeros(2, f32))),
        gpu.DtypeError,
        "the numbers have f32 elements; expected u32",
    ),
    (
        lambda t: nn.cross_entropy(t.parameters["w"], np.array([0, -1, 2])),
        gpu.UniformRangeError,
        r"cross_entropy: the number at \(1,\) is -1; expected 0 to 3",
    ),
    (
        lambda t: nn.cross_entropy(t.parameters["w"], np.array([0, 1])),
        gpu.ShapeError,
        r"cross_entropy: labels has shape \(2,\); expected \(3,\)",
    ),
    (
        lambda _: nn.relu(wrong(np.zeros(3))),
        gpu.DtypeError,
        "Expected a Variable or a Tensor, got a numpy.ndarray",
    ),
    (
        lambda t: nn.relu(wrong(t.ctx.zeros(3, u32))),
        gpu.DtypeError,
        "Expected f32 elements, got u32",
    ),
]


@pytest.mark.parametrize(("call", "error", "says"), MISUSE)
def test_misuse_is_told(
    call: Callable[[Trainer], object],
    error: type[Exception],
    says: str,
    trainer: Trainer,
) -> None:
    with pytest.raises(error, match=says):
        call(trainer)
