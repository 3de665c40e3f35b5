"""Right uses of generated modules: a type checker has nothing to say."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from made import pair, springs
from made.pair import Cluster, PairOutput, Particle
from numpy.typing import NDArray

import kerngen
import kerngen.runtime as gpu
from kerngen.runtime import (
    Context,
    Mat2x2,
    Matrix,
    Scalar,
    Tensor,
    Tensor3,
    Vector,
    bound,
    f16,
    f32,
    i32,
    u32,
    vec3f,
)
from kerngen_kernels import (
    clip,
    elementwise,
    gemv,
    half,
    loss,
    matmul,
    optim,
    reduction,
)
from kerngen_kernels.matmul import MatmulNnUniform

ctx = gpu.open()
assert_type(ctx, Context)
array = np.zeros((2, 3))

v = ctx.vector([1.0, 2.0, 3.0], f32)
m = ctx.matrix(array, f32)
labels = ctx.vector([1, 2], u32)
cube = ctx.tensor3(np.zeros((2, 3, 4), np.int32), i32)
anything = ctx.tensor(array)
assert_type(v, Vector[f32])
assert_type(m, Matrix[f32])
assert_type(labels, Vector[u32])
assert_type(cube, Tensor3[i32])
assert_type(anything, Tensor[Any, Any])
assert_type(ctx.vector([1.0], np.float32), Vector[Any])
assert_type(ctx.zeros((2, 3), array.dtype), Tensor[Any, Any])
assert_type(v.dtype, np.dtype[Any])
assert_type(len(v), int)
assert_type(m.reshape(6), Vector[f32])
assert_type(v.reshape((1, 3)), Matrix[f32])
assert_type(v.reshape(1, -1), Matrix[f32])
assert_type(m[0:1], Matrix[f32])

assert_type(matmul.matmul_nn(m, m), Matrix[f32])
assert_type(matmul.matmul_nn(m, m, alpha=2), Matrix[f32])
assert_type(matmul.matmul_nn(m, m, alpha=0.5, out=m, ctx=ctx), Matrix[f32])
assert_type(matmul.matmul_nn(m, anything, out=None), Matrix[f32])
assert_type(elementwise.relu(v), Vector[f32])
assert_type(half.narrow(v), Vector[f16])
assert_type(half.widen(ctx.vector(array, f16)), Vector[f32])
assert_type(half.matmul_nt(half.narrow(v).reshape((1, 3)), anything), Matrix[f16])
assert_type(reduction.sum(v), Scalar[f32])
assert_type(reduction.sum(v).item(), float | int)
assert_type(loss.cross_entropy(m, labels), Vector[f32])
assert_type(gemv.__name__, str)
optim.adamw(v, v, v, v, lr=1e-3, step=1)
optim.adamw(v, v, v, v, lr=1, beta1=0.9, beta2=0.99, eps=0, weight_decay=0, step=1)
clip.add_sum_squares(reduction.sum(v), v)

both = pair.pair(m, shift=(1.0, 2), count=3)
assert_type(both, PairOutput)
assert_type(both.low, Vector[f32])
low, high = both
assert_type(high, Vector[f32])
assert_type(pair.pair(m, shift=(0, 0), count=0, out=both), PairOutput)
assert_type(pair.highest(cube), Matrix[i32])
assert_type(pair.highest(cube, at=-1), Matrix[i32])
pair.fill(v, reduction.sum(v))

assert_type(matmul.matmul_nn_reference(array, array, alpha=2), NDArray[Any])
assert_type(optim.adamw_reference(array, array, array, array, lr=1, step=1), None)
uniform = MatmulNnUniform(m=1, k=2, n=3, alpha=0.5)
assert_type(uniform.pack(), bytes)
assert_type(MatmulNnUniform.unpack(uniform.pack()), MatmulNnUniform)
assert_type(MatmulNnUniform.SIZE, int)

p = Particle((1, 2.0, 3), 7, ((1, 2, 3), (4, 5, 6)), ((1, 0), (0, 1)))
assert_type(p.pos, tuple[float, float, float])
assert_type(p.trail, tuple[tuple[float, ...], ...])
assert_type(p.turn, Mat2x2)
assert_type(Cluster(first=p, rest=(p, p, p)).rest, tuple[Particle, ...])
assert_type(Particle.unpack(p.pack()), Particle)
assert_type(Particle.pack_array([p]), NDArray[np.void])
assert_type(Particle.unpack_array(Particle.pack_array([p])), list[Particle])
assert_type(Particle.SIZE, int)
ps = ctx.vector([p, p], Particle)
assert_type(ps, Vector[Particle])
assert_type(ctx.matrix([[p], [p]], Particle), Matrix[Particle])
assert_type(ctx.scalar(p, Particle).item(), Particle)
assert_type(ctx.vector(Particle.pack_array([p]), Particle)[0:1], Vector[Particle])
assert_type(ctx.zeros(3, Particle), Vector[Particle])
cluster = Cluster(p, (p, p, p))
shift = (1.0, 2.0, 3.0)
moved = pair.drift(ps, c=cluster, turn=((1, 0), (0, 1)), by=shift)
assert_type(moved, Vector[vec3f])
pair.drift(ps, c=cluster, turn=np.eye(2), by=shift, out=ctx.empty(2, vec3f))
assert_type(ctx.vector(array, vec3f), Vector[vec3f])

# Bound WGSL.
params = springs.Params(1, 0.5, (0, 0, -9.81), ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
nodes = ctx.zeros((), bound.sized(springs.Nodes, 5))
assert_type(nodes, Scalar[springs.Nodes])
group0 = springs.Group0(params=params, nodes=nodes, forces=ctx.zeros(5, vec3f))
assert_type(group0.forces, Tensor[vec3f, Any])
mover = springs.Push(damping=0.9)
assert_type(mover.SIZE, int)
assert_type(mover.workgroup_size, tuple[int, int, int])
ready = mover.bind(group0, springs.Group1(height=object(), near=object()), ctx=ctx)
assert_type(ready, bound.Dispatch)
ready.dispatch_threads(5)
ready.dispatch_workgroups(1, 1, 1)
springs.Group0(params=bound.BufferBinding(object()), nodes=nodes, forces=group0.forces)

blas = kerngen.compile("kernel one() -> y: f32[] { y = 1.0; }", name="blas")
assert_type(blas, kerngen.KernelModule)
assert_type(blas.one, Any)
assert_type(kerngen.load("a.kern"), kerngen.KernelModule)
