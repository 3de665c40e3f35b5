"""Build networks from functions of tensors, and differentiate them.

    from kerngen import nn

    hidden = nn.gelu(nn.linear(x, p["hidden.weight"], p["hidden.bias"]))
    loss = nn.cross_entropy(nn.linear(hidden, p["out.weight"]), labels)

A network is a function of its parameters: with `Trainer.parameters` it can be trained,
with `Trainer.tensors` it only computes, and keeps nothing for gradients (docs/decisions/0009
has the reasons).  Every function records kernels of `kerngen_kernels`; nothing here waits
for the device.
"""

from __future__ import annotations

from kerngen.parts import STANDARD, needing

with needing(__name__, STANDARD):
    from kerngen.nn.attention import attention
    from kerngen.nn.backward import backward
    from kerngen.nn.classes import Numbers, cross_entropy, embedding
    from kerngen.nn.differentiable import Differentiable, differentiable
    from kerngen.nn.elementwise import (
        add,
        dropout,
        gelu,
        gelu_tanh,
        leaky_relu,
        mul,
        relu,
        reshape,
        scale,
        sigmoid,
        sub,
        swish,
        tanh,
        transpose,
    )
    from kerngen.nn.errors import GraphError
    from kerngen.nn.images import (
        avg_pool2d,
        batchnorm,
        conv2d,
        groupnorm,
        max_pool2d,
    )
    from kerngen.nn.losses import (
        binary_cross_entropy,
        huber,
        mean,
        mean_squared_error,
    )
    from kerngen.nn.products import linear, matmul
    from kerngen.nn.rows import layernorm, log_softmax, rmsnorm, softmax
    from kerngen.nn.variable import Value, Variable, parameter

__all__ = [
    "Differentiable",
    "GraphError",
    "Numbers",
    "Value",
    "Variable",
    "add",
    "attention",
    "avg_pool2d",
    "backward",
    "batchnorm",
    "binary_cross_entropy",
    "conv2d",
    "cross_entropy",
    "differentiable",
    "dropout",
    "embedding",
    "gelu",
    "gelu_tanh",
    "groupnorm",
    "huber",
    "layernorm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "matmul",
    "max_pool2d",
    "mean",
    "mean_squared_error",
    "mul",
    "parameter",
    "relu",
    "reshape",
    "rmsnorm",
    "scale",
    "sigmoid",
    "softmax",
    "sub",
    "swish",
    "tanh",
    "transpose",
]
