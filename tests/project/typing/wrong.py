"""Wrong uses of generated modules: a type checker rejects each marked line, and no other."""

from __future__ import annotations

import numpy as np
from made import pair, springs
from made.pair import Cluster, Particle

import kerngen
import kerngen.runtime as gpu
from kerngen.runtime import Matrix, Vector, f32, i32, u32, vec3f, vec4f
from kerngen_kernels import clip, elementwise, half, loss, matmul, optim, reduction
from kerngen_kernels.matmul import MatmulNnUniform

ctx = gpu.open()
array = np.zeros((2, 3), np.float32)
v = ctx.vector([1.0, 2.0, 3.0], f32)
m = ctx.matrix(array, f32)
ints = ctx.vector([1, 2], i32)
labels = ctx.vector([1, 2], u32)
cube = ctx.tensor3(np.zeros((2, 3, 4)), f32)

# Ranks.
matmul.matmul_nn(m, v)  # error
matmul.matmul_nn(cube, m)  # error
elementwise.relu(m)  # error
reduction.sum(reduction.sum(v))  # error
clip.add_sum_squares(v, v)  # error
pair.highest(cube)  # error
wrong_rank: Vector[f32] = matmul.matmul_nn(m, m)  # error
wrong_view: Vector[f32] = m[0:1]  # error

# Element types.
elementwise.relu(ints)  # error
loss.cross_entropy(m, v)  # error
loss.cross_entropy(m, ints)  # error
reduction.dot(v, labels)  # error
wrong_element: Matrix[u32] = matmul.matmul_nn(m, m)  # error
half.widen(v)  # error
elementwise.relu(half.narrow(v))  # error
half.narrow(v, out=v)  # error
ctx.vector([1.0], float)  # error
ctx.vector([1.0], np.float64)  # error
ctx.zeros(3, 4, f32)  # error
ctx.zeros((3, 4))  # error
v + 1  # error
v @ v  # error
v.T  # error

# NumPy arrays are no tensors.
matmul.matmul_nn(array, array)  # error
elementwise.relu([1.0, 2.0])  # error

# Scalars.
optim.adamw(v, v, v, v, lr=1e-3)  # error
optim.adamw(v, v, v, v, step=1)  # error
optim.adamw(v, v, v, v, lr=1e-3, step=1.5)  # error
optim.adamw(v, v, v, v, lr="1e-3", step=1)  # error
optim.adamw(v, v, v, v, lr=None, step=1)  # error
optim.adamw(v, v, v, v, 1e-3, step=1)  # error
matmul.matmul_nn(m, m, 2.0)  # error
pair.pair(m, shift=1.0, count=1)  # error
pair.pair(m, shift=(1.0, 2.0, 3.0), count=1)  # error
pair.pair(m, shift=(1.0, 2.0), count=1.0)  # error

# Missing, misspelt and superfluous arguments.
matmul.matmul_nn(m)  # error
matmul.matmul_nn(m, m, m)  # error
matmul.matmul_nn(m, m, alhpa=2.0)  # error
optim.adamw(v, v, v, v, lr=1e-3, step=1, beta3=0.9)  # error
optim.adamw(v, v, v, lr=1e-3, step=1)  # error
reduction.summ(v)  # error

# Outputs.
matmul.matmul_nn(m, m, out=v)  # error
matmul.matmul_nn(m, m, out=array)  # error
elementwise.relu(v, out=labels)  # error
optim.adamw(v, v, v, v, lr=1e-3, step=1, out=v)  # error
pair.pair(m, shift=(0, 0), count=0, out=v)  # error
pair.pair(m, shift=(0, 0), count=0, out=(v, v))  # error
pair.pair(m, shift=(0, 0), count=0).middle  # error
matmul.matmul_nn(m, m, ctx="gpu")  # error

# References and uniform structs.
matmul.matmul_nn_reference(m, m)  # error
matmul.matmul_nn_reference(array, array, 2.0)  # error
matmul.matmul_nn_reference(array, array, alhpa=2.0)  # error
MatmulNnUniform(1, 2, 3)  # error
MatmulNnUniform(m=1, k=2, n=3, alpha="x")  # error
MatmulNnUniform(m=1, k=2, n=3, alpha=1.0).m = 2  # error

# Structs.
p = Particle((1, 2.0, 3), 7, ((1, 2, 3), (4, 5, 6)), ((1, 0), (0, 1)))
ps = ctx.vector([p], Particle)
cluster = Cluster(p, (p, p, p))
by = (1.0, 2.0, 3.0)
Particle((1, 2), 7, p.trail, p.turn)  # error
Particle(p.pos, 7.5, p.trail, p.turn)  # error
Particle(p.pos, 7, (1, 2), p.turn)  # error
Particle(p.pos, 7, p.trail, p.pos)  # error
Particle(p.pos, 7, p.trail)  # error
Cluster(p, p)  # error
p.pos = by  # error
p.mass  # error
pair.drift(v, c=cluster, turn=p.turn, by=by)  # error
pair.drift(ctx.zeros(3, Cluster), c=cluster, turn=p.turn, by=by)  # error
pair.drift(ps.reshape((1, 1)), c=cluster, turn=p.turn, by=by)  # error
pair.drift(ps, c=p, turn=p.turn, by=by)  # error
pair.drift(ps, c=cluster, turn=p.pos, by=by)  # error
pair.drift(ps, c=cluster, turn=p.turn, by=(1.0, 2.0))  # error
pair.drift(ps, c=cluster, turn=p.turn)  # error
pair.drift(ps, c=cluster, turn=p.turn, by=by, out=ctx.zeros(1, vec4f))  # error
wrong_struct: Vector[vec3f] = ps  # error
ctx.vector([p], p)  # error

# Bound WGSL.
params = springs.Params(1, 0.5, by, ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
nodes = ctx.zeros((), springs.Nodes)
forces = ctx.zeros(5, vec3f)
views = springs.Group1(height=object(), near=object())
springs.Params(1, 0.5, by)  # error
springs.Params(1, 0.5, (1.0, 2.0), params.turn)  # error
springs.Group0(params=by, nodes=nodes, forces=forces)  # error
springs.Group0(params=params, nodes=nodes, forces=v)  # error
springs.Group0(params=params, nodes=nodes)  # error
springs.Push()  # error
springs.Push(damping="0.5")  # error
springs.Push(damping=0.5, SIZE=1.5)  # error
springs.Push(damping=0.5, size=1)  # error
springs.Push(damping=0.5).bind(views)  # error
springs.Push(damping=0.5).bind(views, views)  # error

kerngen.compile("", "name")  # error
kerngen.load(1)  # error
kerngen.parse("")  # error
