"""The `*_step` methods of a trainer: one for each optimizer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from kerngen.train.optimizers import Name, Setting


class Steps(ABC):
    """Methods that take a step of the trainer's optimizer.

    All parameters are updated by one dispatch, and all have the one count of steps.  The
    gradients stay as they are.  Of every step:

    Args:
        lr: The learning rate, or one for each parameter by name.
        weight_decay: How much of a parameter decays, or one for each by name.
        parameters: The names of those to update; their gradients alone count then.
            Neighbours of the same settings share a dispatch.

    Raises:
        StateError: If the trainer was made for another optimizer.
        UniformRangeError: If a setting is out of its range.
        DtypeError: If a setting is no number, or `parameters` no list.
        UnknownNameError: If a name is unknown, or settings by name lack one.
        TornStateError: If an error left an earlier step half taken, or the gradients half
            written.
    """

    @abstractmethod
    def _take_step(
        self,
        name: Name,
        settings: Mapping[str, Setting],
        parameters: Sequence[str] | None,
    ) -> None:
        """Take a step of the optimizer of this name."""

    def adamw_step(
        self,
        *,
        lr: Setting,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: Setting = 0.01,
        parameters: Sequence[str] | None = None,
    ) -> None:
        """Take a step of AdamW (Loshchilov and Hutter, 2019), as torch.optim.AdamW.

        Args:
            lr: The learning rate, or one for each parameter by name.
            beta1: How much of the first moment is kept, below 1.
            beta2: How much of the second moment is kept, below 1.
            eps: Added to the denominator, above 0.
            weight_decay: How much of a parameter decays per unit of `lr`, or one for
                each by name.
            parameters: The names of those to update; all of them by default.
        """
        settings = {
            "lr": lr,
            "beta1": beta1,
            "beta2": beta2,
            "eps": eps,
            "weight_decay": weight_decay,
        }
        self._take_step("adamw", settings, parameters)

    def adam_step(
        self,
        *,
        lr: Setting,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: Setting = 0.0,
        parameters: Sequence[str] | None = None,
    ) -> None:
        """Take a step of Adam (Kingma and Ba, 2015), as torch.optim.Adam.

        Args:
            lr: The learning rate, or one for each parameter by name.
            beta1: How much of the first moment is kept, below 1.
            beta2: How much of the second moment is kept, below 1.
            eps: Added to the denominator, above 0.
            weight_decay: How much of a parameter is added to its gradient, or one for
                each by name.
            parameters: The names of those to update; all of them by default.
        """
        settings = {
            "lr": lr,
            "beta1": beta1,
            "beta2": beta2,
            "eps": eps,
            "weight_decay": weight_decay,
        }
        self._take_step("adam", settings, parameters)

    def sgd_step(
        self,
        *,
        lr: Setting,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: Setting = 0.0,
        parameters: Sequence[str] | None = None,
    ) -> None:
        """Take a step of stochastic gradient descent, as torch.optim.SGD.

        Args:
            lr: The learning rate, or one for each parameter by name.
            momentum: How much of the velocity is kept, below 1.
            nesterov: Whether to step by the velocity that follows (Nesterov, 1983).
            weight_decay: How much of a parameter is added to its gradient, or one for
                each by name.
            parameters: The names of those to update; all of them by default.
        """
        settings = {
            "lr": lr,
            "momentum": momentum,
            "nesterov": int(nesterov),
            "weight_decay": weight_decay,
        }
        self._take_step("sgd", settings, parameters)

    def lion_step(
        self,
        *,
        lr: Setting,
        beta1: float = 0.9,
        beta2: float = 0.99,
        weight_decay: Setting = 0.0,
        parameters: Sequence[str] | None = None,
    ) -> None:
        """Take a step of Lion (Chen et al., 2023, algorithm 2).

        Args:
            lr: The learning rate, or one for each parameter by name: a tenth to a third
                of AdamW's.
            beta1: How much of the momentum counts in the step, below 1.
            beta2: How much of the momentum is kept, below 1.
            weight_decay: How much of a parameter decays per unit of `lr`, or one for
                each by name.
            parameters: The names of those to update; all of them by default.
        """
        settings = {
            "lr": lr,
            "beta1": beta1,
            "beta2": beta2,
            "weight_decay": weight_decay,
        }
        self._take_step("lion", settings, parameters)
