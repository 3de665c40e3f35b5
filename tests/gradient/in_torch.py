"""Kernels in PyTorch: their gradients are those of autograd, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

# PyTorch is in an extra of its own, and so unknown to the type checkers.
torch: Any = import_module("torch")
f: Any = import_module("torch.nn.functional")

Values: TypeAlias = Mapping[str, Any]
InTorch: TypeAlias = Callable[[Any], Any]
"""From a kernel's arguments, as attributes, to its output."""


def _causal(a: Any, times: int = 1) -> Any:
    s, t = a.q.shape[2], a.k.shape[2]
    mask = torch.ones(s, t, dtype=torch.bool).tril(t - s)
    k, v = (x.repeat_interleave(times, 1) for x in (a.k, a.v))
    return f.scaled_dot_product_attention(a.q, k, v, attn_mask=mask)


def _rotary(a: Any) -> Any:
    r = a.cosine.shape[1]
    one, other, rest = a.x[..., :r], a.x[..., r : 2 * r], a.x[..., 2 * r :]
    turned = one * a.cosine - other * a.sine, other * a.cosine + one * a.sine
    return torch.cat((*turned, rest), -1)


def _groupnorm(a: Any) -> Any:
    x, gain, bias = a.x.flatten(1, 2), a.gain.flatten(), a.bias.flatten()
    return f.group_norm(x, a.gain.shape[0], gain, bias, a.eps).reshape(a.x.shape)


def _normalized(x: Any, axes: tuple[int, ...], eps: Any) -> Any:
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + eps)


def _conv2d(a: Any) -> Any:
    return f.conv2d(a.x, a.k, stride=a.stride, padding=a.pad, dilation=a.dilation)


def _replicated_conv(a: Any) -> Any:
    x = f.pad(a.x[None, None], (1, 1, 1, 1), mode="replicate")
    return f.conv2d(x, a.k[None, None])[0, 0]


def _segment_softmax(a: Any) -> Any:
    found = torch.zeros_like(a.x)
    for part in range(a.parts):
        own = a.ids == part
        found = found.index_put((own,), a.x[own].softmax(0))
    return found


def _triplets(a: Any) -> Any:
    same, other = (a.x[x.long().clamp(0, len(a.x) - 1)] for x in (a.same, a.other))
    near, far = (((a.x - x) ** 2).sum(1) for x in (same, other))
    return torch.clamp(near - far + a.margin, min=0.0).mean()


def _rotated(a: Any) -> Any:
    axis = a.q[:, :3]
    t = 2 * torch.linalg.cross(axis, a.v)
    return a.v + a.q[:, 3:] * t + torch.linalg.cross(axis, t)


def _safe_rows(a: Any) -> Any:
    own = a.x[1:]
    size = own.norm(dim=1, keepdim=True)
    return torch.cat((0.0 * a.x[:1], own / size + size.log()))


def _exclusive(a: Any) -> Any:
    rest = (torch.cat((a.x[:, :j], a.x[:, j + 1 :]), 1) for j in range(a.x.shape[1]))
    return torch.stack([others.prod(1) for others in rest], 1)


def _masked_layer(a: Any) -> Any:
    h = a.x @ a.w
    return torch.where(a.mask.long() > 1, h * h + h.log(), 0.0) @ a.u


def _payload(a: Any) -> Any:
    place = a.x.argmax(1, keepdim=True)
    return (a.v.gather(1, place) * a.x.gather(1, place))[:, 0]


IN_TORCH: Final[dict[str, InTorch]] = {
    "softmax": lambda a: a.x.softmax(1),
    "log_softmax": lambda a: a.x.log_softmax(1),
    "layernorm": lambda a: _normalized(a.x, (1,), a.eps) * a.gain + a.bias,
    "rmsnorm": lambda a: (
        a.x * torch.rsqrt((a.x**2).mean(1, keepdim=True) + a.eps) * a.gain
    ),
    "attention": lambda a: f.scaled_dot_product_attention(a.q, a.k, a.v),
    "causal_attention": _causal,
    "grouped_query_attention": lambda a: _causal(a, 2),
    "rotary": _rotary,
    "conv2d": _conv2d,
    "max_pool2d": lambda a: f.max_pool2d(a.x, a.size, a.stride, a.pad),
    "avg_pool2d": lambda a: f.avg_pool2d(a.x, a.size, a.stride),
    "binary_cross_entropy": lambda a: f.binary_cross_entropy_with_logits(
        a.x, a.target, reduction="none"
    ),
    "mean_cross_entropy": lambda a: f.cross_entropy(a.logits, a.labels.long()),
    "gelu": lambda a: f.gelu(a.x),
    "gelu_tanh": lambda a: f.gelu(a.x, approximate="tanh"),
    "swish": lambda a: f.silu(a.x),
    "replicated_conv": _replicated_conv,
    "product_diagonal": lambda a: (a.a @ a.b).diagonal(),
    "pixel_shuffle_by_2": lambda a: f.pixel_shuffle(a.x, 2),
    "pixel_unshuffle_by_2": lambda a: f.pixel_unshuffle(a.x, 2),
    "channel_shuffle_by_4": lambda a: f.channel_shuffle(a.x[None], 4)[0],
    "replicated_conv2d": lambda a: f.conv2d(
        f.pad(a.x[None], (1, 1, 1, 1), mode="replicate"), a.k
    )[0],
    "reflected_conv1d": lambda a: f.conv1d(
        f.pad(a.x[None], (1, 1), mode="reflect"), a.k
    )[0],
    "looked_up": lambda a: a.t[a.ids.long().clamp(0, len(a.t) - 1)] @ a.w,
    "blocks": lambda a: f.pixel_shuffle(a.x, 2)[0],
    "kronecker": lambda a: torch.kron(a.a, a.b),
    "bilinear_form": lambda a: f.bilinear(a.x, a.z, a.w),
    "low_rank": lambda a: a.x @ a.w.T + 0.5 * (a.x @ a.a.T @ a.b.T),
    "gated": lambda a: f.silu(a.x @ a.gate.T) * (a.x @ a.up.T),
    "running_logsumexp": lambda a: torch.logcumsumexp(a.x, 0),
    "cycles": lambda a: torch.trace(a.a @ a.a @ a.a),
    "segment_softmax": _segment_softmax,
    "triplets": _triplets,
    "rotated": _rotated,
    "exclusive_products": _exclusive,
    "masked_layer": _masked_layer,
    "outer_sum": lambda a: a.x[:, :, None] + 2 * a.b,
    "payload": _payload,
    "circular": lambda a: torch.stack(
        [a.x.roll(-place) @ a.g for place in range(len(a.x))]
    ),
    "safe_rows": _safe_rows,
    "groupnorm": _groupnorm,
    "huber": lambda a: f.huber_loss(
        a.prediction, a.target, reduction="none", delta=a.delta
    ),
}
"""Kernels of dsl/ and of `layers.kern`."""

BY_TENSORS_ALONE: Final = {"groupnorm", "huber"}
"""Those of which PyTorch has no gradient by a scalar."""


def gradients(
    function: InTorch, values: Values, by: tuple[str, ...], weight: Any
) -> list[Any]:
    """Return what autograd gives for a weighted sum of a function's value."""
    given = {
        name: torch.tensor(value) if hasattr(value, "shape") else value
        for name, value in values.items()
    }
    for name in by:
        given[name] = torch.tensor(values[name], dtype=torch.float64)
        given[name].requires_grad_()
    loss = (function(SimpleNamespace(**given)) * torch.tensor(weight)).sum()
    return [x.numpy() for x in torch.autograd.grad(loss, [given[n] for n in by])]
