"""Exchanges between ranks: replicas that stay equal, and faults that all ranks are told."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from time import sleep
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen import nn
from kerngen.runtime import f32, u32
from kerngen.train import (
    ExchangeError,
    NonFiniteError,
    ProcessGroup,
    TornStateError,
    Trainer,
)

from .networks import BATCH, INPUTS, initial, poison
from .ranks import (
    Arrays,
    Engine,
    batch_of,
    check_alike,
    loss_by,
    loss_of,
)

SHORT = 1.5
"""Seconds until a rank gives up, in tests where it does.

On a busy machine a rank may come tenths of a second late.
"""


def open_context() -> gpu.Context:
    """A context of a rank: ranks in threads compute in NumPy."""
    return gpu.open(adapter="reference")


class Rank:
    """A trainer that is one of several."""

    def __init__(
        self,
        ctx: gpu.Context,
        engine: Engine,
        number: int,
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self.engine, self.number = engine, number
        group = engine.group(number, timeout) if engine.size > 1 else None
        self.trainer = Trainer(ctx, initial(seed), group=group)

    def backward(self) -> None:
        trainer = self.trainer
        size = self.engine.size
        self.loss = loss_of(trainer, trainer.step_count, self.number, size)
        trainer.backward(self.loss)

    def step(self, wire: Any = "f32") -> float:
        self.backward()
        self.trainer.exchange(self.engine.mean(self.number), wire=wire)
        norm = self.trainer.clip_gradients(1.0).item()
        self.trainer.adamw_step(lr=1e-2)
        return norm


@pytest.mark.parametrize(("size", "steps"), [(2, 100), (3, 5)])
def test_half_batches_train_as_the_whole(size: int, steps: int) -> None:
    """Ranks of 8 / size rows; of 3 ranks the mean is another, and only replicas count."""

    def train(
        engine: Engine, rank: int
    ) -> tuple[list[tuple[float, float]], dict[str, Any]]:
        with open_context() as ctx:
            each = Rank(ctx, engine, rank)
            curve = [(each.step(), each.loss.item()) for _ in range(steps)]
            return curve, each.trainer.state()

    engine = Engine(size)
    ranks = engine.run(lambda rank: train(engine, rank))
    check_alike([state for _, state in ranks])
    if size == 2:
        curve, state = train(Engine(1), 0)
        mean = np.mean([curve for curve, _ in ranks], axis=0)  # the norms are the same
        np.testing.assert_allclose(mean, curve, rtol=1e-6)
        names = [name for name in state if name.startswith("parameters.")]
        states = [{name: each[name] for name in names} for each in (state, ranks[0][1])]
        check_alike(states, within=1e-5)


def test_what_a_step_reads_and_writes() -> None:
    """One read and one write of each segment with an exchange; none without."""
    limits = {**gpu.WEBGPU_LIMITS, "max-storage-buffer-binding-size": 1024}
    shapes = {f"p{n}": np.ones(200) for n in range(3)}
    with gpu.open(adapter="software", limits=limits) as small:
        trainer = Trainer(small, shapes)
        lengths = list(trainer.layout.segments)
        assert lengths == [256] * 3
        found: list[list[tuple[int, np.dtype[Any]]]] = []

        def note(arrays: Arrays) -> None:
            found.append([(array.size, array.dtype) for array in arrays])
            assert all(array.flags.c_contiguous for array in arrays)

        trainer.check()
        for exchanged in (True, True, False):
            before = small.counters.snapshot()
            for gradient in trainer.gradients.values():
                gradient.clear()
            if exchanged:
                trainer.exchange(note)
            trainer.clip_gradients(1.0)
            trainer.adamw_step(lr=0.1)
            small.submit()
            done = small.counters - before
            assert (done.readbacks, done.uploads) == (3 * exchanged, 3 * exchanged)
        assert found == [[(256, np.dtype(np.float32))] * 3] * 2


@pytest.mark.parametrize("wire", ["f32", "f16"])
def test_the_device_gets_what_the_function_makes(ctx: gpu.Context, wire: Any) -> None:
    trainer = Trainer(ctx, {"a": np.ones(3), "b": np.ones((2, 2))})
    place = trainer.layout.places["b"]
    values = np.array([[1.5, -2], [0.1, 1e-5]])
    trainer.gradients["b"].copy_from(values)

    def double(arrays: Arrays) -> None:
        (array,) = arrays
        assert array.dtype == {"f32": np.float32, "f16": np.float16}[wire]
        part = array[place.start : place.start + place.length]
        np.testing.assert_allclose(part, values.reshape(-1), rtol=1e-3, atol=1e-7)
        array *= 2

    trainer.exchange(double, wire=wire)
    got = trainer.gradients["b"].numpy()
    if wire == "f32":
        np.testing.assert_array_equal(got, 2 * values.astype(np.float32))
    else:
        np.testing.assert_array_equal(got, 2 * values.astype(np.float16))
    norm = trainer.clip_gradients(1.0).item()
    np.testing.assert_allclose(norm, 2 * np.linalg.norm(values), rtol=1e-3)


def test_a_sum_of_squares_that_overflows_after_an_exchange(ctx: gpu.Context) -> None:
    """The elements are finite: the device finds it, as in any step."""
    trainer = Trainer(ctx, {"a": np.ones(3)})
    trainer.gradients["a"].copy_from(np.full(3, 1e30))
    trainer.exchange(lambda _: None)
    trainer.adamw_step(lr=0.1)
    with pytest.raises(NonFiniteError, match="Step 1"):
        trainer.check()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_on_one_rank(value: float) -> None:
    """All are told the rank, the step and the parameter, and go on from equal states."""
    engine = Engine(2)

    def train(rank: int) -> tuple[str, dict[str, Any]]:
        with open_context() as ctx:
            each = Rank(ctx, engine, rank)
            for _ in range(3):
                each.step()
            each.backward()
            if rank == 1:
                each.trainer.gradients["out.bias"].copy_from([0, value, 0, 0])
            with pytest.raises(NonFiniteError) as caught:
                each.trainer.exchange(engine.mean(rank))
            with pytest.raises(TornStateError, match="an exchange of them failed"):
                each.trainer.adamw_step(lr=0.1)
            assert each.trainer.step_count == 3
            each.step()
            return str(caught.value), each.trainer.state()

    (one, first), (other, second) = engine.run(train)
    assert one == other
    assert "before step 4: gradients are not finite on rank 1, of 'out.bias'" in one
    check_alike([first, second])


def test_without_a_group_nan_reaches_all_ranks() -> None:
    engine = Engine(2)

    def run(rank: int) -> str:
        with open_context() as ctx:
            trainer = Trainer(ctx, initial())
            if rank == 1:
                trainer.gradients["out.bias"].copy_from([0, np.nan, 0, 0])
            with pytest.raises(NonFiniteError) as caught:
                trainer.exchange(engine.mean(rank))
            return str(caught.value)

    one, other = engine.run(run)
    assert one == other
    assert "before step 1: the exchanged gradients are not finite, of 'out.bias'" in one


def faults_of(work: Callable[[gpu.Context, Engine, int], None]) -> list[str]:
    """What each of two ranks is told."""
    engine = Engine(2)

    def run(rank: int) -> str:
        with open_context() as ctx, pytest.raises(gpu.Error) as caught:
            work(ctx, engine, rank)
        return f"{type(caught.value).__name__}: {caught.value}"

    return engine.run(run)


def other_network(ctx: gpu.Context, engine: Engine, rank: int) -> None:
    parameters = {"a": np.ones(3 + 90 * rank)}
    trainer = Trainer(ctx, parameters, group=engine.group(rank))
    trainer.exchange(engine.mean(rank))


def other_optimizer(ctx: gpu.Context, engine: Engine, rank: int) -> None:
    trainer = Trainer(
        ctx,
        {"a": np.ones(3)},
        optimizer="lion" if rank else "sgd",
        group=engine.group(rank),
    )
    trainer.exchange(engine.mean(rank))


def other_shards(ctx: gpu.Context, engine: Engine, rank: int) -> None:
    group = engine.group(rank)
    trainer = Trainer(ctx, {"a": np.ones(128)}, group=group, sharded=rank == 1)
    trainer.exchange(engine.mean(rank))


def other_segments(ctx: gpu.Context, engine: Engine, rank: int) -> None:
    parameters = {"a": np.ones(200), "b": np.ones(200)}
    least = {**gpu.WEBGPU_LIMITS, "max-storage-buffer-binding-size": 1024}
    with gpu.open(adapter="software", limits=least) if rank else ctx as each:
        trainer = Trainer(each, parameters, group=engine.group(rank))
        trainer.exchange(engine.mean(rank))


def other_wire(ctx: gpu.Context, engine: Engine, rank: int) -> None:
    trainer = Trainer(ctx, initial(), group=engine.group(rank))
    trainer.exchange(engine.mean(rank), wire="f16" if rank else "f32")


def other_seed(ctx: gpu.Context, engine: Engine, rank: int) -> None:
    Rank(ctx, engine, rank, seed=rank).step()


def other_checkpoint(ctx: gpu.Context, engine: Engine, rank: int) -> None:
    each = Rank(ctx, engine, rank)
    each.step()
    if rank:
        each.trainer.load_state(Rank(ctx, Engine(1), 0).trainer.state())
    each.step()


def a_step_too_many(ctx: gpu.Context, engine: Engine, rank: int) -> None:
    each = Rank(ctx, engine, rank)
    each.step()
    if rank:
        each.backward()
        each.trainer.adamw_step(lr=0.1)
    each.step()


def interrupted(_: str) -> None:
    raise KeyboardInterrupt


def torn(ctx: gpu.Context, engine: Engine, rank: int) -> None:
    each = Rank(ctx, engine, rank)
    if rank:
        loss = loss_of(each.trainer, 0, rank, 2)
        with pytest.raises(KeyboardInterrupt):
            each.trainer.backward(loss, on_final=interrupted)
    each.trainer.exchange(engine.mean(rank))


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (other_network, "ExchangeError: .*rank 1 has other parameters"),
        (other_optimizer, "ExchangeError: .*rank 1 has .*another optimizer"),
        (other_shards, "ExchangeError: .*rank 1 has .*other segments"),
        (other_segments, "ExchangeError: .*rank 1 has .*other segments"),
        (other_wire, "ExchangeError: .*rank 1 exchanges float16, rank 0 float32"),
        (other_seed, "ExchangeError: .*rank 1 began from another state"),
        (
            other_checkpoint,
            "ExchangeError: .*rank 1 is before step 1, rank 0 before step 2",
        ),
        (a_step_too_many, "rank 1 is before step 3, rank 0 before step 2"),
        (torn, "TornStateError: .*the gradients of rank 1 .* no single loss"),
    ],
)
def test_all_ranks_are_told(
    work: Callable[[gpu.Context, Engine, int], None], text: str
) -> None:
    for told in faults_of(work):
        assert re.search(text, told), told


def resized(arrays: Arrays) -> None:
    arrays[0].resize((2, 32), refcheck=False)


def replaced(arrays: Arrays) -> None:
    arrays[0] = arrays[0] / 2


def returned(arrays: Arrays) -> object:
    return arrays[0] * 2


def failing(_: Arrays) -> None:
    raise RuntimeError("connection closed by peer")


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (resized, r"changed an array of shape \(64,\).*to shape \(2, 32\)"),
        (replaced, "'replaced' replaced an array of the list; write into it"),
        (returned, "returned a numpy.ndarray; expected None"),
        (failing, "'failing' raised RuntimeError: connection closed by peer"),
    ],
)
def test_functions_that_do_something_else(
    ctx: gpu.Context, function: Callable[[Arrays], object], text: str
) -> None:
    trainer = Trainer(ctx, {"a": np.ones(3)})
    trainer.gradients["a"].copy_from(np.ones(3))
    with pytest.raises(ExchangeError, match=f"before step 1: .*{text}"):
        trainer.exchange(function)
    np.testing.assert_array_equal(trainer.gradients["a"].numpy(), np.ones(3))
    with pytest.raises(TornStateError):
        trainer.adamw_step(lr=0.1)
    with pytest.raises(ExchangeError, match="an earlier one failed"):
        trainer.exchange(lambda _: None)


def change_a_shape(each: Rank) -> None:
    def resize(arrays: Arrays) -> None:
        each.engine.mean(1)(arrays)
        resized(arrays)

    each.trainer.exchange(resize)


def return_late(each: Rank) -> None:
    def wait(arrays: Arrays) -> None:
        each.engine.mean(1)(arrays)
        sleep(2 * SHORT)

    each.trainer.exchange(wait)


def never_come(_: Rank) -> None:
    raise gpu.Error("no more data")


def hang(each: Rank) -> None:
    sleep(2 * SHORT)
    each.trainer.exchange(each.engine.mean(1))


def load_another_layout(each: Rank) -> None:
    state = each.trainer.state()
    state["parameters.out.bias"] = np.ones(7, np.float32)
    each.trainer.load_state(state)


def load_another_state(each: Rank) -> None:
    other = Trainer(each.trainer.ctx, initial(seed=1)).state()
    each.trainer.load_state({**other, "step": np.array(2)})
    each.trainer.exchange(each.engine.mean(1))


GONE = r"before step \d on rank 0 of 2: .* Rank 1 has not come to it\. Start all"


@pytest.mark.parametrize(
    ("fault", "on_0", "on_1"),
    [
        (change_a_shape, GONE, "'resize' changed an array of shape"),
        (return_late, GONE, rf"'wait' did not return within {SHORT} s"),
        (never_come, GONE, "no more data"),
        (hang, GONE, "raised BrokenBarrierError"),
        (load_another_layout, GONE, "'parameters.out.bias'"),
        (load_another_state, "rank 1 began from another", "rank 1 began from another"),
    ],
)
def test_a_fault_of_one_rank_ends_all(
    fault: Callable[[Rank], None], on_0: str, on_1: str
) -> None:
    """In bounded time, by an error that names the rank, and after whole steps."""
    engine = Engine(2, patience=SHORT)

    def step(each: Rank) -> None:
        each.backward()
        if (each.trainer.step_count, each.number) == (2, 1):
            fault(each)
        else:
            each.trainer.exchange(engine.mean(each.number))
        each.trainer.adamw_step(lr=1e-2)

    def run(rank: int) -> str:
        with open_context() as ctx:
            each = Rank(ctx, engine, rank, timeout=SHORT)
            states: list[dict[str, Any]] = []

            def train() -> None:
                for _ in range(4):
                    states[:] = [each.trainer.state()]
                    step(each)

            with pytest.raises(gpu.Error) as caught:
                train()
            if not (rank and fault is load_another_state):
                check_alike([*states, each.trainer.state()])
            return str(caught.value)

    for told, expected in zip(engine.run(run), (on_0, on_1), strict=True):
        assert re.search(expected, told), told


class Gone(list[int]):
    """Numbers that can be read no more."""

    def __getitem__(self, rank: Any) -> Any:
        del rank
        raise ConnectionError("the store is gone")


@pytest.mark.parametrize(
    ("arrivals", "text"),
    [
        ([4, 4, 4], "All ranks have come to it, so one failed or hangs within. Start"),
        ([4, 0, 4], "Rank 1 has not come to it. Start"),
        ([4, 4, 3], "Rank 2 has not come to it. Start"),
        ([4, 0, 3], "Ranks 1, 2 have not come to it. Start"),
        (
            Gone(),
            "Who is missing can't be read: ConnectionError: the store is gone. St",
        ),
    ],
)
def test_who_is_missing(ctx: gpu.Context, arrivals: list[int], text: str) -> None:
    if arrivals:
        arrivals[0] -= 1
    group = ProcessGroup(0, 3, failing, arrivals=arrivals)
    trainer = Trainer(ctx, {"a": np.ones(3)}, group=group)
    with pytest.raises(ExchangeError, match=re.escape(text)):
        trainer.exchange(lambda _: None)


def test_a_rank_that_takes_no_part(ctx: gpu.Context) -> None:
    trainer = Trainer(
        ctx, {"a": np.ones(3)}, group=ProcessGroup(0, 2, lambda _: None, timeout=5)
    )
    with pytest.raises(ExchangeError, match="gave 0 for the 1 of rank 1"):
        trainer.exchange(lambda _: None)


@pytest.mark.parametrize(
    ("rank", "size", "timeout", "text"),
    [
        (2, 2, None, "rank 2 of 2; expected a rank from 0 on"),
        (0, 0, None, "rank 0 of 0"),
        ("0", 2, None, "rank is a str; expected an int"),
        (0, 2, 0.0, "the timeout is 0.0"),
    ],
)
def test_groups_that_are_none(rank: Any, size: int, timeout: Any, text: str) -> None:
    with pytest.raises(gpu.Error, match=text):
        ProcessGroup(rank, size, lambda _: None, timeout=timeout)


def test_gradients_that_are_final_while_the_walk_goes_on(either: gpu.Context) -> None:
    """One that is used twice only after its second use; unused ones at the end."""
    values = {"a": np.eye(3), "b": 2 * np.eye(3), "unused": np.ones(2)}
    trainer = Trainer(either, values)
    p = trainer.parameters
    x = either.matrix(np.arange(6).reshape(2, 3), f32)
    hidden = nn.linear(nn.linear(nn.linear(x, p["a"]), p["b"]), p["a"])
    seen: dict[str, NDArray[np.float32]] = {}

    def read(name: str) -> None:
        assert name not in seen
        seen[name] = trainer.gradients[name].numpy()

    trainer.gradients["unused"].copy_from([1, 1])
    trainer.backward(nn.mean(hidden), on_final=read)
    assert list(seen) == ["b", "a", "unused"]
    for name, gradient in seen.items():
        np.testing.assert_array_equal(trainer.gradients[name].numpy(), gradient)
    assert seen["a"].any()
    with pytest.raises(gpu.StateError, match="calls no 'on_final'"), trainer.capture():
        trainer.backward(nn.mean(nn.linear(x, p["a"])), on_final=read)


class Captured(Rank):
    """A rank whose step is captured, with the exchange in it."""

    def __init__(self, ctx: gpu.Context, engine: Engine, number: int) -> None:
        super().__init__(ctx, engine, number)
        size = BATCH // engine.size
        self.x, self.labels = ctx.zeros((size, INPUTS), f32), ctx.zeros(size, u32)
        trainer = self.trainer
        with trainer.capture() as self.taken:
            trainer.backward(loss_by(trainer, self.x, self.labels))
            trainer.exchange(engine.mean(number))
            self.norm = trainer.clip_gradients(1.0)
            trainer.adamw_step(lr=self.taken.scalar("lr", 0.0))

    def step(self, wire: Any = "f32") -> float:
        del wire
        x, labels = batch_of(self.trainer.step_count, self.number, self.engine.size)
        self.x.copy_from(x)
        self.labels.copy_from(labels)
        self.taken.replay(lr=1e-2)
        return self.norm.item()


def test_captured_steps_exchange_between_two_captures() -> None:
    """The bits are those of the calls; what is not finite is refused, and no step torn."""

    def train(kind: type[Rank], engine: Engine, rank: int) -> dict[str, Any]:
        with open_context() as ctx:
            each = kind(ctx, engine, rank)
            for _ in range(4):
                each.step()
            if isinstance(each, Captured):
                if rank == 1:
                    each.x.copy_from(np.full(each.x.shape, np.nan))
                with pytest.raises(NonFiniteError, match=r"before step 5: .* rank 1"):
                    each.taken.replay()
                assert each.trainer.step_count == 4
            before = ctx.counters.snapshot()
            each.step()
            assert (ctx.counters - before).readbacks == 1 + 1  # the norm
            return each.trainer.state()

    states: list[dict[str, Any]] = []
    for kind in (Rank, Captured):
        states += Engine(2).run(partial(train, kind, Engine(2)))
    check_alike(states)


def test_a_replay_does_not_trust_what_an_exchange_saw(ctx: gpu.Context) -> None:
    """The gradients that were exchanged before the capture are not those of a replay."""
    trainer = Trainer(ctx, initial())
    trainer.exchange(lambda _: None)
    with trainer.capture() as step:
        trainer.clip_gradients(1.0)
        trainer.adamw_step(lr=0.1)
    poison(trainer)
    step.replay()
    with pytest.raises(NonFiniteError, match="Step 1"):
        trainer.check()


def test_what_can_not_be_captured(ctx: gpu.Context) -> None:
    trainer = Trainer(ctx, {"a": np.ones(3)})
    with pytest.raises(gpu.StateError, match=r"Use trainer\.capture"), ctx.capture():
        trainer.exchange(lambda _: None)

    def after_the_update() -> None:
        with trainer.capture():
            trainer.adamw_step(lr=0.1)
            trainer.exchange(lambda _: None)

    with pytest.raises(gpu.StateError, match="has its update already"):
        after_the_update()
    with pytest.raises(gpu.ArgumentError, match="wire is 'bf16'"):
        trainer.exchange(lambda _: None, wire="bf16")  # type: ignore[arg-type]
    trainer.adamw_step(lr=0.1)
    assert not ctx.is_capturing
