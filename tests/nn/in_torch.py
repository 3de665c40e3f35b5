"""What the functions of kerngen.nn are in PyTorch, and its gradients in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from .functions import IDS, LABELS, TARGET, Array, Arrays, Function

# PyTorch is in an extra of its own, and so unknown to the type checkers.
torch: Any = import_module("torch")
F: Any = import_module("torch.nn.functional")


def _heads(t: Any, heads: int) -> Any:
    return t.reshape(*t.shape[:2], heads, -1).transpose(1, 2)


def _attention(heads: int, *, causal: bool) -> Callable[..., Any]:
    def attend(q: Any, k: Any, v: Any) -> Any:
        s, t = q.shape[1], k.shape[1]
        mask = torch.ones(s, t, dtype=torch.bool).tril(t - s) if causal else None
        y = F.scaled_dot_product_attention(
            _heads(q, heads), _heads(k, heads), _heads(v, heads), mask
        )
        return y.transpose(1, 2).flatten(2)

    return attend


def _shared(x: Any) -> Any:
    return torch.tanh(x) + F.gelu(x) - x


def _rmsnorm(x: Any, gain: Any) -> Any:
    return F.rms_norm(x, gain.shape, gain, 1e-6)


def _layernorm(x: Any, gain: Any, bias: Any) -> Any:
    return F.layer_norm(x, gain.shape, gain, bias, 1e-5)


def _groupnorm(x: Any, gain: Any, bias: Any) -> Any:
    return F.group_norm(x, 2, gain, bias, 1e-5)


def _batchnorm(x: Any, gain: Any, bias: Any) -> Any:
    return F.batch_norm(x, None, None, gain, bias, training=True, eps=1e-5)


TWINS: Mapping[str, Callable[..., Any]] = {
    "conv2d": partial(F.conv2d, stride=2, padding=1),
    "max_pool2d": partial(F.max_pool2d, kernel_size=2),
    "avg_pool2d": partial(F.avg_pool2d, kernel_size=2),
    "groupnorm": _groupnorm,
    "batchnorm": _batchnorm,
    "huber": partial(F.huber_loss, target=torch.tensor(TARGET), delta=0.5),
    "binary_cross_entropy": partial(
        F.binary_cross_entropy_with_logits, target=torch.tensor(TARGET)
    ),
    "relu": torch.relu,
    "leaky_relu": partial(F.leaky_relu, negative_slope=0.2),
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "swish": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "scale": partial(torch.mul, -2.5),
    "softmax": partial(F.softmax, dim=-1),
    "log_softmax": partial(F.log_softmax, dim=-1),
    "reshape": partial(torch.reshape, shape=(5, -1)),
    "twice": torch.square,
    "shared": _shared,
    "mean": torch.mean,
    "transpose": torch.t,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "matmul": torch.matmul,
    "linear": F.linear,
    "layernorm": _layernorm,
    "rmsnorm": _rmsnorm,
    "embedding": partial(F.embedding, torch.tensor(IDS)),
    "cross_entropy": partial(F.cross_entropy, target=torch.tensor(LABELS)),
    "mean_squared_error": F.mse_loss,
    "attention_1": _attention(1, causal=False),
    "attention_2_causal": _attention(2, causal=True),
    "attention_4": _attention(4, causal=False),
    "attention_4_causal": _attention(4, causal=True),
}
"""The twin of each function, by its name."""


def by_autograd(
    function: Function, arrays: Arrays, target: Array | None
) -> tuple[Array, dict[str, Array]]:
    """Return the value, and the gradients of its distance to a target (itself if None)."""
    given = [
        torch.tensor(array, dtype=torch.float64, requires_grad=True)
        for array in arrays.values()
    ]
    y = TWINS[function.name](*given)
    loss = y if target is None else ((y - torch.tensor(target)) ** 2).mean()
    found = [each.numpy() for each in torch.autograd.grad(loss, given)]
    return y.detach().numpy(), dict(zip(arrays, found, strict=True))
