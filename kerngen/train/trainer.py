"""The trainer: parameters, gradients and moments in arenas, and steps on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, final

from numpy.typing import ArrayLike, NDArray

from kerngen import nn
from kerngen.runtime import (
    Context,
    DeviceLost,
    DtypeError,
    Scalar,
    ShapeError,
    StateError,
    Tensor,
    f32,
)
from kerngen.runtime.context import check_context
from kerngen.train.arena import Arena, Array, Layout, Span, lay_out
from kerngen.train.captured import CapturedStep, StepPart
from kerngen.train.checkpoint import read_checkpoint, write_checkpoint
from kerngen.train.errors import CheckpointError, NonFiniteError, TornStateError
from kerngen.train.exchange import (
    Exchanger,
    Identity,
    Wire,
    check_wire,
    identity_of,
    write_back,
)
from kerngen.train.gradients import Gradients
from kerngen.train.group import Exchange, ProcessGroup
from kerngen.train.guard import StepGuard
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
from kerngen.train.products import Products
from kerngen.train.shard import Shard
from kerngen.train.state import PARAMETERS, Snapshot, as_parameters, snapshot_of
from kerngen.train.steps import Steps


@final
class Trainer(Steps, Products):
    """Named f32 parameters on a device, with all that is needed to train them.

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
        group: ProcessGroup | None = None,
        sharded: bool = False,
    ) -> None:
        """Upload the initial parameters, in their order; no step has been taken.

        Args:
            ctx: Its context; `kerngen.runtime.open(device=...)` shares a device.
            parameters: Arrays of any rank by name, converted to float32.
            optimizer: The optimizer of all steps: "adamw", "adam", "sgd" or "lion".
            group: The processes that train this network together; `exchange` compares
                them, and names the rank in errors.
            sharded: Whether each rank keeps the moments of its part of the parameters
                only, and updates that; a step gathers the others (Rajbhandari et al.,
                2020, stage 1).

        Raises:
            UnknownNameError: If there is no such optimizer.
            ShapeError: If there are no parameters, or one is empty.
            DtypeError: If a parameter is not of real numbers, or exceeds float32's range.
            LimitError: If a parameter is larger than the adapter can bind.
            ContextError: If `ctx` is no context.
        """
        self.ctx = check_context("Trainer", ctx)
        self._optimizer = optimizer_of(optimizer)
        self._group = group
        arrays = as_parameters(parameters)
        shapes = {name: array.shape for name, array in arrays.items()}
        self._shard = Shard(group) if sharded else None
        layout = lay_out(
            shapes, ctx.max_tensor_bytes, group.size if group and sharded else 1
        )
        held = self._shard.of(layout) if self._shard else None
        self._arenas = {PARAMETERS: Arena(ctx, layout)} | {
            name: Arena(ctx, layout, held) for name in self._optimizer.moments
        }
        self._gradients = Gradients(ctx, layout, held)
        self._parameters = Named(
            {
                name: nn.parameter(self.tensors[name], self.gradients[name])
                for name in shapes
            }
        )
        self._guard = StepGuard(ctx)
        self._exchanger = Exchanger(layout, group, self._gradients.held)
        self._identity = self._identity_of([arrays])
        self._step = 0
        self._stepped_at = -1
        self._arenas[PARAMETERS].write(arrays)
        segments = [s for arena in self._arenas.values() for s in arena.segments]
        self._whole = Integrity([*segments, self._guard.failed, self._gradients.one])
        self._captured: CapturedStep | None = None
        self._block = ExitStack()
        self._device_lost = ""
        ctx.watch(self)

    # ---- parameters, gradients and moments

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

    @property
    def layout(self) -> Layout:
        """The place of each parameter in the segments, which is the same in all arenas."""
        return self._gradients.arena.layout

    def _moments(self, group: str) -> Named[Tensor[f32, Any]]:
        if group not in self._optimizer.moments:
            raise StateError(f"{self._optimizer.step} keeps no '{group}'.")
        if self._shard is not None:
            raise StateError(
                f"{group}: each rank of a sharded trainer holds a part of it. Call "
                "trainer.state() on all ranks, which gathers them."
            )
        return self._arenas[group].tensors

    @property
    def step_count(self) -> int:
        """The number of steps since the beginning, or since `reset`."""
        return self._step

    # ---- gradients

    def backward(
        self,
        loss: nn.Variable,
        *,
        accumulate: bool = False,
        on_final: Callable[[str], object] | None = None,
    ) -> None:
        """Write the gradients of a scalar loss by all parameters, or add to them.

        Parameters that the loss does not depend on have a gradient of 0.  Those of other
        trainers count as constants: their gradients stay as they are.

        `on_final` is called with the name of each parameter once its gradient is recorded
        whole, the last layers' first: a thread can read that while the walk goes on.

        Raises:
            GraphError: If the loss depends on no parameter of this trainer, if its graph
                is used up, or if what it was computed from has been overwritten.
            ShapeError: If the loss is not a scalar.
            StateError: If there is an `on_final` in a capture: replays call nothing.
        """
        with self._during("backward", gradients=accumulate):
            if self._captured is not None and on_final is not None:
                raise StateError(
                    "backward: a replay calls no 'on_final'. Capture without it."
                )
            if self._captured is not None and not accumulate:
                self._captured.replaces = True
            self._gradients.backward(
                loss, self._parameters, accumulate=accumulate, on_final=on_final
            )

    def exchange(self, function: Exchange, *, wire: Wire = "f32") -> None:
        """Run a function that changes the gradients on the host, such as to their mean.

        It comes between `backward` and `clip_gradients`, also in the block of `capture()`.
        This one replaces the gradients by their mean over all processes:

            def mean(arrays):
                for array in arrays:
                    comm.Allreduce(MPI.IN_PLACE, array)
                    array /= comm.size

            trainer.exchange(mean)

        This waits: each segment of the gradients is read once and written once.

        Args:
            function: Gets a list of contiguous arrays of float32, one for each segment of
                `layout`, and changes them in place; it returns None once it is done.
            wire: "f16" rounds the gradients on the device, and the arrays are of float16.
                A gradient above 65504 is infinite then.

        Raises:
            NonFiniteError: If gradients are not finite: with a group those of any rank, on
                all ranks alike.  No step was taken.
            TornStateError: If an error left gradients half written, on any rank.
            ExchangeError: If the function fails, or changes more than the numbers; with a
                group, if it is late, a rank is missing, or ranks differ in parameters,
                optimizer, step number, or initial state.
            StateError: In a capture that is not the trainer's.
        """
        check_wire(wire)
        if self._captured is not None:
            self._captured.check_exchange()
            self._split(self._captured, lambda: self.exchange(function, wire=wire))
            self._gradients.note_captured_exchange()
            return
        if self.ctx.is_capturing:
            raise StateError(
                "exchange: a capture of the context can't wait for other processes. Use "
                "trainer.capture()."
            )
        step, gradients = self._step + 1, self._gradients
        fault = self._whole.fault or gradients.fault
        with self._explaining("exchange"), gradients.exchanging():
            exchanged = self._exchanger.run(
                function,
                gradients.arena.segments,
                wire=wire,
                step=step,
                fault=fault,
                identity=self._identity,
            )
            write_back(gradients.parts, exchanged.arrays)
            if exchanged.is_bounded:
                gradients.note_finite(exchanged.total)

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
            (values, own)
            for values, group in groups
            for span in layout.spans(group)
            if (own := span.within(self._gradients.held)) is not None
        ]  # one dispatch for each
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
        if self._captured is not None and self._shard is not None:
            self._split(self._captured, self._gather)

    def _update(self, updates: Sequence[tuple[Settings, Span]], step: int) -> None:
        parameters, *moments = self._arenas.values()
        arenas = parameters, self._gradients.arena, *moments
        with self._whole.writing(f"step {step} reached some of the parameters only"):
            for settings, span in updates:
                parts = [arena.part(span) for arena in arenas]
                self._optimizer.update(parts, self._guard.failed, settings, step)
            if self._captured is None:
                self._gather()
            self._step = step

    def _gather(self) -> None:
        """Fill the parameters in that other ranks have updated, if there are any."""
        if self._shard is not None:
            where = f"{self._optimizer.step}, step {self._step + 1}"
            self._shard.gather_parameters(self._arenas[PARAMETERS], where)

    @contextmanager
    def capture(self) -> Generator[CapturedStep, None, None]:
        """Record a step without taking it: `replay()` takes it, as often as needed.

        The block makes the calls of one step, from the network to `adamw_step` or the like.
        It may upload and read nothing, so batches are tensors that are overwritten between
        replays.  `docs/training.md` has an example, `Context.capture` further rules.

        Raises:
            StateError: If the block takes no step, or more than one, or makes a call that
                can't be captured.
            TornStateError: If an error left an earlier step half taken.
        """
        with self._during("capture"), ExitStack() as block:
            self._block, before = block, self._step
            self._gradients.forget_norm()
            recorded = block.enter_context(self.ctx.capture())
            step = self._captured = CapturedStep(recorded, before + 1, self._take)
            try:
                yield step
                step.finish()
            except BaseException:
                step.close()
                raise
            finally:
                self._captured, self._step = None, before
                self._gradients.forget_norm()

    def _split(self, step: CapturedStep, wait: Callable[[], None]) -> None:
        """End the capture of a step's part, and begin the next; `wait` comes between."""
        self._block.close()
        step.split(wait, self._block.enter_context(self.ctx.capture()))
        self._gradients.forget_norm()

    def _take(
        self,
        parts: Sequence[StepPart],
        record: Callable[[StepPart, int], None],
        *,
        replaces: bool,
    ) -> None:
        """Take a captured step, which replaces the gradients or adds to present ones."""
        step = self._step + 1
        # If a part before the update fails, the parameters are still whole.
        at = next(number for number, part in enumerate(parts) if part.updates)
        with self._during("replay", gradients=not replaces):
            for part in parts[:at]:
                with self._gradients.replaying(anew=replaces):
                    record(part, step)
                replaces = False
                if part.wait is not None:
                    part.wait()
        with (
            self._during("replay", gradients=not replaces),
            self._gradients.replaying(anew=replaces),
            self._whole.writing(f"step {step} reached some of the parameters only"),
        ):
            if not self._gradients.is_finite:
                self._guard.arm()
            for part in parts[at:]:
                record(part, step)
                if part.wait is not None:
                    part.wait()
            self._step = step
        self._stepped_at = self._gradients.writes

    def check(self) -> None:
        """Wait for the recorded steps; raise if one was not taken.

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
        """Reset the trainer: the step count and the moments are 0."""
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
        """Wait for the device, and return the whole state as named arrays.

        All ranks of a sharded trainer call it, as it gathers the moments.

        'step' is the count of steps; for each parameter x there is 'parameters.x', and
        what the optimizer keeps of it: 'm.x' and 'v.x' for AdamW.

        Raises:
            NonFiniteError: If a step was not taken; the next call returns the state
                before it.
            TornStateError: If an error left a step half taken.
        """
        with self._during("state"):
            groups = {
                group: (
                    self._shard.gather(arena, "state") if self._shard else arena.read()
                )
                for group, arena in self._arenas.items()
            }
            return Snapshot(groups, self._step).flat()

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state, bit for bit.

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
        self._identity = self._identity_of([*snapshot.groups.values()])

    def _identity_of(self, arrays: Sequence[Mapping[str, Array]]) -> Identity:
        """Return the checksums that must be the same on all ranks."""
        named = arrays if self._group else ()
        options = self._optimizer.name, self._shard is not None
        return identity_of(self.layout, options, named)

    def save(self, path: str | PathLike[str]) -> None:
        """Wait for the device, and write the state to a safetensors file.

        All ranks of a sharded trainer call it, and the first one writes.

        Raises:
            OSError: If it can't be written; what was there before is there still.
        """
        state, goal = self.state(), Path(path)
        if self._shard is None:
            write_checkpoint(goal, state)
        else:
            self._shard.write(goal, state)

    def load(self, path: str | PathLike[str]) -> None:
        """Continue from the state in a file.

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
        """Raise if the trainer's state is invalid, then run a block that uses it.

        With `gradients`, these must be valid, too.  In a capture of the context it raises
        StateError; in the trainer's own one, only if `captured` is false.
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
        """Add to a DeviceLost error what it means for training."""
        try:
            yield
        except DeviceLost as error:
            self._device_lost = (
                f"{what}, after {self._step} steps: the parameters were lost with "
                "their device. Open a context, make a trainer and load a checkpoint. "
                f"{error}"
            )
            raise DeviceLost(self._device_lost) from error
