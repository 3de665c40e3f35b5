"""The trainer: flat arenas, and the steps that are recorded on them."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerngen import nn
from kerngen.runtime import (
    Context,
    DeviceLost,
    DtypeError,
    Matrix,
    Scalar,
    ShapeError,
    Tensor,
    UniformRangeError,
    f32,
)
from kerngen.runtime.context import check_context
from kerngen.train.adamw import AdamW, sum_squares
from kerngen.train.arena import Arena, Span, lay_out
from kerngen.train.checkpoint import read_checkpoint, write_checkpoint
from kerngen.train.errors import CheckpointError, NonFiniteError, TornStateError
from kerngen.train.guard import Guard
from kerngen.train.names import Named
from kerngen.train.state import GROUPS, Snapshot, as_parameters, snapshot_of
from kerngen_kernels import clip, elementwise, matmul, optim


@final
class Trainer:
    """Named parameters of f32 on a context's device, and what is needed to train them.

    Parameters, gradients and AdamW's two moments lie in an arena each, so that a step is
    one dispatch and clipping a few, however many parameters there are.  Calls record
    work and return; none waits for the device but those that say so.

    A step whose gradients are not finite is not taken, and neither are those after it:
    the device skips them.  The next read of any tensor of the context raises
    NonFiniteError, after which the trainer is as it was before that step.
    """

    def __init__(self, ctx: Context, parameters: Mapping[str, ArrayLike]) -> None:
        """Upload the initial parameters, in their order; no step has been taken.

        Args:
            ctx: Where they live; `kerngen.runtime.open(device=...)` shares a device.
            parameters: Arrays of any rank by name, converted to float32.

        Raises:
            ShapeError: If there are none, or one is empty.
            DtypeError: If one holds no real numbers.
            LimitError: If one is larger than the adapter can bind.
            ContextError: If `ctx` is no context.
        """
        self.ctx = check_context("Trainer", ctx)
        arrays = as_parameters(parameters)
        shapes = {name: array.shape for name, array in arrays.items()}
        layout = lay_out(shapes, ctx.max_tensor_bytes)
        self._arenas = {group: Arena(ctx, layout) for group in GROUPS}
        self._gradients = Arena(ctx, layout)
        self._parameters = Named(
            {
                name: nn.parameter(self.tensors[name], self.gradients[name])
                for name in shapes
            }
        )
        self._one = ctx.scalar(1.0, f32)
        self._guard = Guard(ctx)
        self._step = 0
        self._total: Scalar[f32] | None = None
        self._torn = ""
        self._recording = ctx.backend.recording
        self._arenas["parameters"].write(arrays)
        ctx.watch(self)

    # ---- what it holds

    @property
    def parameters(self) -> Named[nn.Variable]:
        """The parameters as variables, for networks that are to be trained."""
        return self._parameters

    @property
    def tensors(self) -> Named[Tensor[f32, Any]]:
        """The parameters as tensors, for networks that only compute."""
        return self._arenas["parameters"].tensors

    @property
    def gradients(self) -> Named[Tensor[f32, Any]]:
        """The gradients, which `backward` writes, or the caller."""
        return self._gradients.tensors

    @property
    def m(self) -> Named[Tensor[f32, Any]]:
        """AdamW's first moments: the running means of the gradients."""
        return self._arenas["m"].tensors

    @property
    def v(self) -> Named[Tensor[f32, Any]]:
        """AdamW's second moments: the running means of the gradients' squares."""
        return self._arenas["v"].tensors

    @property
    def step_count(self) -> int:
        """How many steps were recorded since the beginning, or since `reset`."""
        return self._step

    # ---- gradients

    def matmul_forward(
        self, a: Matrix[f32], b: Matrix[f32], *, out: Matrix[f32] | None = None
    ) -> Matrix[f32]:
        """Return c = a b, of a [m, k] and b [k, n]."""
        return matmul.matmul_nn(a, b, out=out)

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
        grad_a = matmul.matmul_nt(grad_c, b, out=out[0])
        grad_b = matmul.matmul_tn(a, grad_c, out=out[1])
        return grad_a, grad_b

    def backward(self, loss: nn.Variable, *, accumulate: bool = False) -> None:
        """Write the gradients of a scalar loss by all parameters, or add to them.

        Parameters that the loss does not depend on have a gradient of 0.

        Raises:
            GraphError: If the loss depends on no parameter of this trainer, or its graph
                is used up.
            ShapeError: If the loss is not a scalar.
        """
        with self._during("backward"):
            self._total = None
            reached = set(nn.backward(loss, self._one, accumulate=accumulate))
            if reached.isdisjoint(self._parameters.values()):
                raise nn.GraphError(
                    "backward: the loss depends on parameters of another trainer only."
                )
            if accumulate:
                return
            for name, variable in self._parameters.items():
                if variable not in reached:
                    gradient = self.gradients[name]
                    gradient.copy_from(np.zeros(gradient.shape, np.float32))

    def gradient_norm(self) -> Scalar[f32]:
        """Return the Euclidean norm of all gradients together, on the device."""
        return _root(sum_squares(self._gradients.segments))

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
        if not 0.0 <= max_norm < math.inf:
            raise UniformRangeError(
                f"clip_gradients: max_norm is {max_norm}; expected at least 0, and "
                f"finite."
            )
        with self._during("clip_gradients"):
            total = sum_squares(self._gradients.segments)
            norm = _root(total)
            if error_if_nonfinite and not math.isfinite(value := norm.item()):
                raise NonFiniteError(
                    f"clip_gradients, before step {self._step + 1}: the norm of the "
                    f"gradients is {value}. {self._culprits()} Nothing was changed."
                )
            for segment in self._gradients.segments:
                clip.clip_by_norm(segment, total, max_norm=max_norm)
            self._total = total
            return norm

    # ---- steps

    def adamw_step(
        self,
        *,
        lr: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        parameters: Sequence[str] | None = None,
    ) -> None:
        """Take one AdamW step by the gradients (Loshchilov and Hutter, 2019).

        All parameters are updated by one dispatch, or those named, whose gradients alone
        count then; all have the one count of steps.  The gradients stay as they are.

        Raises:
            UniformRangeError: If a setting is out of its range.
            UnknownNameError: If a name is unknown.
            TornStateError: If an error left an earlier step half taken.
        """
        settings = AdamW(
            lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay
        )
        layout = self._gradients.layout
        names = list(layout.places) if parameters is None else list(parameters)
        spans = layout.spans(names)
        with self._during("adamw_step"):
            self._update(spans, settings)

    def _update(self, spans: Sequence[Span], settings: AdamW) -> None:
        step = self._step + 1
        total = self._total
        self._total = None
        with self.ctx.batch():
            if total is None:
                total = sum_squares([self._gradients.part(span) for span in spans])
            self._guard.note(total, step)
            for span in spans:
                optim.adamw_unless(
                    self._arenas["parameters"].part(span),
                    self._gradients.part(span),
                    self._arenas["m"].part(span),
                    self._arenas["v"].part(span),
                    self._guard.failed,
                    lr=settings.lr,
                    beta1=settings.beta1,
                    beta2=settings.beta2,
                    eps=settings.eps,
                    weight_decay=settings.weight_decay,
                    step=step,
                )
                self._torn = f"Step {step} reached some of the parameters only"
            self._recording = self.ctx.backend.recording
        self._step = step
        self._torn = ""

    def check(self) -> None:
        """Wait for the steps that were recorded, if any were since the last check.

        Every read of a tensor of the context does this.

        Raises:
            NonFiniteError: If a step was not taken since its gradients were not finite.
        """
        failed = self._guard.look()
        if not failed:
            return
        last, self._step = self._step, failed - 1
        self._guard.clear()
        skipped = "It was" if failed == last else f"Steps {failed} to {last} were"
        culprits = (
            self._culprits()
            if failed == last
            else "Later gradients have replaced them since; with "
            "clip_gradients(..., error_if_nonfinite=True) the step that fails says more."
        )
        raise NonFiniteError(
            f"Step {failed}: the gradients are not finite. {culprits} {skipped} not "
            f"taken: parameters and moments are those after step {failed - 1}."
        )

    def _culprits(self) -> str:
        """Name the parameters whose gradients are not finite; this waits."""
        wrong = {
            name: int(np.count_nonzero(~np.isfinite(gradient)))
            for name, gradient in self._gradients.read().items()
        }
        found = [f"'{name}' ({count})" for name, count in wrong.items() if count]
        if not found:
            return "All are finite, but not the sum of their squares."
        return f"Not finite are elements of {', '.join(found)}."

    def reset(self) -> None:
        """Forget the steps: their count is 0 and the moments are zeros again."""
        with self._during("reset"):
            for group in ("m", "v"):
                self._arenas[group].clear()
            self._guard.clear()
            self._step = 0

    # ---- states

    def state(self) -> dict[str, NDArray[Any]]:
        """Wait, and return all that a continuation needs, as arrays by name.

        'step' is the count of steps; for each parameter x there are 'parameters.x',
        'm.x' and 'v.x'.

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

        Raises:
            ShapeError: If it is of other parameters.
            DtypeError: If an array is not of float32.
        """
        shapes = {name: tensor.shape for name, tensor in self.tensors.items()}
        snapshot = snapshot_of(state, shapes)
        self._torn = "A state was loaded in part"
        for group, arena in self._arenas.items():
            arena.write(snapshot.groups[group])
        self._guard.clear()
        self._total = None
        self._step = snapshot.step
        self._recording = self.ctx.backend.recording
        self._torn = ""

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
    def _during(self, what: str) -> Generator[None, None, None]:
        """Refuse to go on from a half-taken step, and say what a lost device means."""
        if self.ctx.backend.is_lost(self._recording):
            self._torn = "The last step was lost with an error"
        if self._torn:
            raise TornStateError(
                f"{what}: {self._torn}, so that the parameters are of no certain step. "
                f"Load a state, or a checkpoint."
            )
        try:
            yield
        except DeviceLost as error:
            raise DeviceLost(
                f"{what}, after {self._step} steps: the parameters went with their "
                f"device. Open a context, make a trainer and load a checkpoint. {error}"
            ) from error


def _root(total: Scalar[f32]) -> Scalar[f32]:
    return elementwise.sqrt(total.reshape(1)).reshape(())
