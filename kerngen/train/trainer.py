"""The trainer: flat arenas, and the steps that are recorded on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, final

from numpy.typing import ArrayLike, NDArray

from kerngen import nn
from kerngen.runtime import (
    Context,
    DeviceLost,
    DtypeError,
    Matrix,
    Scalar,
    ShapeError,
    StateError,
    Tensor,
    f32,
)
from kerngen.runtime.context import check_context
from kerngen.train.arena import Arena, Span, lay_out
from kerngen.train.captured import CapturedStep
from kerngen.train.checkpoint import read_checkpoint, write_checkpoint
from kerngen.train.errors import CheckpointError, NonFiniteError, TornStateError
from kerngen.train.gradients import Gradients
from kerngen.train.guard import Guard
from kerngen.train.integrity import Integrity
from kerngen.train.names import Named
from kerngen.train.optimizers import (
    Name,
    Setting,
    Settings,
    by_settings,
    check_names,
    check_range,
    optimizer_of,
)
from kerngen.train.products import left_gradient, product, right_gradient
from kerngen.train.state import PARAMETERS, Snapshot, as_parameters, snapshot_of
from kerngen.train.steps import Steps


@final
class Trainer(Steps):
    """Named parameters of f32 on a context's device, and what is needed to train them.

    Parameters, gradients and the optimizer's moments lie in an arena each, so that a step is
    one dispatch and clipping a few, however many parameters there are.  Calls record
    work and return; none waits for the device unless its docstring states it.

    A step whose gradients are not finite is not taken, and neither are those after it:
    the device skips them.  The next read of any tensor of the context, by the thread that
    trains, raises NonFiniteError, after which the trainer is as it was before that step.

    A trainer belongs to one thread; others may use its context.
    """

    def __init__(
        self,
        ctx: Context,
        parameters: Mapping[str, ArrayLike],
        *,
        optimizer: Name = "adamw",
    ) -> None:
        """Upload the initial parameters, in their order; no step has been taken.

        Args:
            ctx: Where they live; `kerngen.runtime.open(device=...)` shares a device.
            parameters: Arrays of any rank by name, converted to float32.
            optimizer: Whose steps it takes: "adamw", "adam", "sgd" or "lion".

        Raises:
            UnknownNameError: If there is no such optimizer.
            ShapeError: If there are none, or one is empty.
            DtypeError: If one holds no real numbers, or some beyond float32's range.
            LimitError: If one is larger than the adapter can bind.
            ContextError: If `ctx` is no context.
        """
        self.ctx = check_context("Trainer", ctx)
        self._optimizer = optimizer_of(optimizer)
        arrays = as_parameters(parameters)
        shapes = {name: array.shape for name, array in arrays.items()}
        layout = lay_out(shapes, ctx.max_tensor_bytes)
        self._arenas = {
            group: Arena(ctx, layout)
            for group in (PARAMETERS, *self._optimizer.moments)
        }
        self._gradients = Gradients(ctx, layout)
        self._parameters = Named(
            {
                name: nn.parameter(self.tensors[name], self.gradients[name])
                for name in shapes
            }
        )
        self._guard = Guard(ctx)
        self._step = 0
        self._stepped_at = -1
        self._arenas[PARAMETERS].write(arrays)
        segments = [s for arena in self._arenas.values() for s in arena.segments]
        self._whole = Integrity([*segments, self._guard.failed, self._gradients.one])
        self._captured: CapturedStep | None = None
        self._device_lost = ""
        ctx.watch(self)

    # ---- what it holds

    @property
    def parameters(self) -> Named[nn.Variable]:
        """The parameters as variables, for networks that are to be trained."""
        return self._parameters

    @property
    def tensors(self) -> Named[Tensor[f32, Any]]:
        """The parameters as tensors, for networks that only compute."""
        return self._arenas[PARAMETERS].tensors

    @property
    def gradients(self) -> Named[Tensor[f32, Any]]:
        """The gradients, which `backward` writes, or the caller."""
        return self._gradients.arena.tensors

    @property
    def m(self) -> Named[Tensor[f32, Any]]:
        """The first moments of AdamW, Adam and Lion: running means of the gradients."""
        return self._moments("m")

    @property
    def v(self) -> Named[Tensor[f32, Any]]:
        """The second moments of AdamW and Adam, or the velocities of SGD."""
        return self._moments("v")

    def _moments(self, group: str) -> Named[Tensor[f32, Any]]:
        if group not in self._optimizer.moments:
            raise StateError(f"{self._optimizer.step} keeps no '{group}'.")
        return self._arenas[group].tensors

    @property
    def step_count(self) -> int:
        """How many steps were recorded since the beginning, or since `reset`."""
        return self._step

    # ---- gradients

    def matmul_forward(
        self, a: Matrix[f32], b: Matrix[f32], *, out: Matrix[f32] | None = None
    ) -> Matrix[f32]:
        """Return c = a b, of a [m, k] and b [k, n].

        `b` may be larger than the adapter can bind.
        """
        return product(a, b, out)

    def matmul_backward(
        self,
        a: Matrix[f32],
        b: Matrix[f32],
        grad_c: Matrix[f32],
        *,
        out: tuple[Matrix[f32] | None, Matrix[f32] | None] = (None, None),
    ) -> tuple[Matrix[f32], Matrix[f32]]:
        """Return the gradients by a [m, k] and b [k, n], from that by c = a b [m, n].

        They are grad_c b^T and a^T grad_c; the transposed factors are read where they
        lie.  `out` may name a gradient: `out=(None, trainer.gradients["weight"])`.
        """
        return left_gradient(b, grad_c, out[0]), right_gradient(a, grad_c, out[1])

    def backward(self, loss: nn.Variable, *, accumulate: bool = False) -> None:
        """Write the gradients of a scalar loss by all parameters, or add to them.

        Parameters that the loss does not depend on have a gradient of 0.  Those of other
        trainers count as constants: their gradients stay as they are.

        Raises:
            GraphError: If the loss depends on no parameter of this trainer, if its graph
                is used up, or if what it was computed from has been overwritten.
            ShapeError: If the loss is not a scalar.
        """
        with self._during("backward", gradients=accumulate):
            if self._captured is not None and not accumulate:
                self._captured.replaces = True
            self._gradients.backward(loss, self._parameters, accumulate=accumulate)

    def clear_gradients(self) -> None:
        """Overwrite all gradients with zeros."""
        with self._explaining("clear_gradients"):
            self._gradients.clear()

    def gradient_norm(self) -> Scalar[f32]:
        """Return the Euclidean norm of all gradients together, on the device."""
        with self._during("gradient_norm", gradients=True):
            return self._gradients.norm()

    def clip_gradients(
        self, max_norm: float, *, error_if_nonfinite: bool = False
    ) -> Scalar[f32]:
        """Scale all gradients so that their norm together is at most `max_norm`.

        Every gradient is multiplied by min(1, max_norm / (norm + 1e-6)), as by
        torch.nn.utils.clip_grad_norm_.

        Args:
            max_norm: The largest norm, not negative.
            error_if_nonfinite: Whether to wait for the norm, one readback, and raise at
                once if it is not finite.  Without it nothing waits, and the step that
                follows is not taken.

        Returns:
            The norm before clipping, on the device.

        Raises:
            NonFiniteError: If asked for; the gradients are as they were.
            UniformRangeError: If `max_norm` is negative or not finite.
        """
        check_range("clip_gradients", "max_norm", max_norm)
        with self._during("clip_gradients", gradients=True):
            check = self._expect_finite if error_if_nonfinite else None
            return self._gradients.clip(max_norm, check)

    def _expect_finite(self, norm: Scalar[f32]) -> None:
        value = norm.item()
        if not math.isfinite(value):
            raise NonFiniteError(
                f"clip_gradients, before step {self._step + 1}: the norm of the "
                f"gradients is {value}. {self._gradients.culprits()} Nothing was changed."
            )

    # ---- steps

    def _take_step(
        self,
        name: Name,
        settings: Mapping[str, Setting],
        parameters: Sequence[str] | None,
    ) -> None:
        where, layout = f"{name}_step", self._gradients.arena.layout
        if name != self._optimizer.name:
            raise StateError(
                f"{where}: this trainer was made for {self._optimizer.step}. Make one "
                f'for this: Trainer(ctx, parameters, optimizer="{name}").'
            )
        names = check_names(where, parameters, list(layout.places))
        groups = by_settings(where, names, settings)
        updates = [
            (values, span) for values, group in groups for span in layout.spans(group)
        ]
        with self._during(where, gradients=True), self.ctx.batch():
            if self._captured is None:
                step = self._step + 1
            else:
                step = self._captured.note_update(where, (of for of, _ in groups))
            norm = self._gradients.norm_of(names)
            if not norm.is_finite:
                self._guard.note(norm.total, step)
            self._update(updates, step)
        self._stepped_at = self._gradients.writes

    def _update(self, updates: Sequence[tuple[Settings, Span]], step: int) -> None:
        parameters, *moments = self._arenas.values()
        arenas = parameters, self._gradients.arena, *moments
        with self._whole.writing(f"step {step} reached some of the parameters only"):
            for settings, span in updates:
                parts = [arena.part(span) for arena in arenas]
                self._optimizer.update(parts, self._guard.failed, settings, step)
            self._step = step

    @contextmanager
    def capture(self) -> Generator[CapturedStep, None, None]:
        """Record a step without taking it: `replay()` takes it, as often as needed.

        The block holds what a step does, from the network to `adamw_step` or its like, once;
        it may upload and read nothing, so batches are tensors that are overwritten between
        replays.  `docs/training.md` has an example, and `Context.capture` what else holds.

        Raises:
            StateError: If the block has no step, or more than one, or what can't be
                captured.
            TornStateError: If an error left an earlier step half taken.
        """
        with self._during("capture"), self.ctx.capture() as recorded:
            before = self._step
            step = self._captured = CapturedStep(recorded, before + 1, self._take)
            try:
                yield step
                step.finish()
            finally:
                self._captured, self._step = None, before
                self._gradients.forget_norm()

    def _take(self, record: Callable[[int], None], *, replaces: bool) -> None:
        """Take a captured step, which replaces the gradients or uses those there are."""
        step = self._step + 1
        with (
            self._during("replay", gradients=not replaces),
            self._gradients.replaying(anew=replaces),
            self._whole.writing(f"step {step} reached some of the parameters only"),
        ):
            self._guard.arm()
            record(step)
            self._step = step
        self._stepped_at = self._gradients.writes

    def check(self) -> None:
        """Wait for the steps that were recorded, if any were since the last check.

        Every read of a tensor of the context does this, in the thread that trains.

        Raises:
            NonFiniteError: If a step was not taken since its gradients were not finite.
        """
        with self._guard.look() as failed:
            if failed:
                self._go_back(failed)

    def _go_back(self, failed: int) -> None:
        """Restore the state before a step that was not taken, and raise."""
        last, self._step = max(self._step, failed), failed - 1
        findings = self._findings(failed, last)
        self._guard.clear()
        skipped = "It was" if failed == last else f"Steps {failed} to {last} were"
        raise NonFiniteError(
            f"Step {failed}: the gradients are not finite. {findings} "
            f"{skipped} not taken: parameters and moments are those after step "
            f"{failed - 1}."
        )

    def _findings(self, failed: int, last: int) -> str:
        """Name the parameters whose gradients made a step fail, if they are still there."""
        if failed == last and self._gradients.writes == self._stepped_at:
            return self._gradients.culprits()
        return (
            "Other gradients have replaced them since; "
            "clip_gradients(..., error_if_nonfinite=True) would name the parameters."
        )

    def reset(self) -> None:
        """Forget the steps: their count is 0 and the moments are zeros again."""
        with (
            self._during("reset", captured=False),
            self._whole.writing("a reset was interrupted"),
        ):
            for group in self._optimizer.moments:
                self._arenas[group].clear()
            self._guard.clear()
            self._step = 0

    # ---- states

    def state(self) -> dict[str, NDArray[Any]]:
        """Wait, and return all that a continuation needs, as arrays by name.

        'step' is the count of steps; for each parameter x there is 'parameters.x', and
        what the optimizer keeps of it: 'm.x' and 'v.x' for AdamW.

        Raises:
            NonFiniteError: If a step was not taken; the next call returns the state
                before it.
            TornStateError: If an error left a step half taken.
        """
        with self._during("state"):
            groups = {group: arena.read() for group, arena in self._arenas.items()}
            return Snapshot(groups, self._step).flat()

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state, as if it had just been reached: bit for bit.

        The gradients are zeros then.

        Raises:
            ShapeError: If it is of other parameters.
            DtypeError: If it is no state, or an array is not of float32.
        """
        shapes = {name: tensor.shape for name, tensor in self.tensors.items()}
        snapshot = snapshot_of(state, list(self._arenas), shapes)
        with (
            self._explaining("load_state"),
            self._whole.writing("a state was loaded in part", anew=True),
        ):
            for group, arena in self._arenas.items():
                arena.write(snapshot.groups[group])
            self._gradients.one.copy_from(1.0)
            self._gradients.clear()
            self._guard.clear()
            self._step = snapshot.step

    def save(self, path: str | PathLike[str]) -> None:
        """Wait, and write the state to a safetensors file, whole or not at all.

        Raises:
            OSError: If it can't be written; what was there before is there still.
        """
        write_checkpoint(Path(path), self.state())

    def load(self, path: str | PathLike[str]) -> None:
        """Go on from the state in a file.

        Raises:
            CheckpointError: If it is no checkpoint, is damaged, or of other parameters;
                nothing was changed.
            OSError: If it can't be read.
        """
        state = read_checkpoint(Path(path))
        try:
            self.load_state(state)
        except (ShapeError, DtypeError) as error:
            raise CheckpointError(f"{path}: {error}") from error

    # ---- errors

    @contextmanager
    def _during(
        self, what: str, *, gradients: bool = False, captured: bool = True
    ) -> Generator[None, None, None]:
        """Refuse to go on from what is not whole, the gradients too if they are used.

        Refuse it in captures as well, but in the trainer's own if it can be `captured`.
        """
        if self.ctx.is_capturing and not (captured and self._captured):
            raise StateError(
                f"{what}: a capture of the context would not count the step. Use "
                "trainer.capture(), and call this outside if it is no part of a step."
            )
        if self._device_lost:
            raise DeviceLost(self._device_lost)
        if fault := self._whole.fault:
            raise TornStateError(
                f"{what}: {fault}, so the parameters belong to no particular step. Load a "
                f"state, or a checkpoint."
            )
        if gradients and (fault := self._gradients.fault):
            raise TornStateError(
                f"{what}: {fault}, so the gradients belong to no single loss. Compute "
                "the loss again and call backward(), or clear them."
            )
        with self._explaining(what):
            yield

    @contextmanager
    def _explaining(self, what: str) -> Generator[None, None, None]:
        """Say of a lost device what it means for training."""
        try:
            yield
        except DeviceLost as error:
            self._device_lost = (
                f"{what}, after {self._step} steps: the parameters were lost with "
                "their device. Open a context, make a trainer and load a checkpoint. "
                f"{error}"
            )
            raise DeviceLost(self._device_lost) from error
