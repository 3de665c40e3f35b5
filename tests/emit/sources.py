"""Sources of many constructs, and documentation that tries to become code."""

from __future__ import annotations

SOURCE = """
    //! Many kinds of kernels.
    const TWO: f32 = 2.0;
    fn twice(x: f32) -> f32 { TWO * x }

    /// One output.
    kernel one(
        /// The rows.
        x: f32[m, n],
        /// The factor.
        alpha: f32 = 0.5,
        origin: vec3f,
        count: u32,
    ) -> y: f32[m, n] {
        host inverse = 1 / alpha;
        host parts = m / count + m % count;
        y[i, j] = alpha * twice(x[i, j]) + origin.x * inverse + f32(parts);
    }
    /// Several outputs.
    kernel several(x: f32[n], t: i32[a, b, c, d, n]) -> total: f32[], copy: f32[n] {
        total = sum[i] x[i];
        copy[i] = x[i] + f32(sum[p, q, r, s] t[p, q, r, s, i]);
    }
    /// In place.
    kernel update(mut x: f32[n], step: u32) { x[i] += f32(step); }
    schedule update when n % 4 == 0 and step > 2 and adapter.workgroup_bytes >= 1024 { map }
    schedule update when step / 2 < n { generic }
"""

ADAMW = """
    kernel adamw(mut param: f32[n], grad: f32[n], mut m: f32[n], mut v: f32[n],
                 lr: f32, beta1: f32 = 0.9, beta2: f32 = 0.999, eps: f32 = 1e-8,
                 weight_decay: f32 = 0.01, step: u32) {
        host bias1 = 1 - pow(beta1, step);
        host bias2 = 1 - pow(beta2, step);
        m[i] = beta1 * m[i] + (1.0 - beta1) * grad[i];
        v[i] = beta2 * v[i] + (1.0 - beta2) * grad[i] * grad[i];
        param[i] -= lr * (m[i] / bias1 / (sqrt(v[i] / bias2) + eps) + weight_decay * param[i]);
    }
"""

REDUCE = """
    kernel reduce(x: f32[m, n], w: f32[n])
        -> a: f32[m], b: f32[n], c: f32[], d: f32[], e: f32[m], f: f32[m], g: f32[] {
        a[i] = prod[j] x[i, j];
        b[j] = min[i] x[i, j];
        c = max[i, j] x[i, j];
        d = sum[i, j] x[i, j] * x[i, j];
        e[i] = sum[j] 2.0 * x[i, j] * w[j] * 0.5;
        f[i] = sum[j] x[i, j] * max[l] w[l];
        g = sum[i] (max[j] x[i, j]);
    }
"""

LOOPS = """
    kernel loops(a: f32[m, k], b: f32[k, n], c: f32[k])
        -> lowest: f32[m, n], total: f32[m, n], largest: f32[n] {
        lowest[i, j] = min[p] (a[i, p] + b[p, j]);
        total[i, j] = sum[p] abs(a[i, p] - b[p, j]) * (c[p] + f32(p));
        largest[j] = max[p, q] (b[p, j] * c[q]);
    }
"""

GATHER = """
    kernel gather(table: f32[v, d], ids: u32[t], x: f32[t, v], at: i32[t], cube: f32[t, v, d])
        -> rows: f32[t, d], picked: f32[t], turned: f32[d, t], both: f32[t], mid: f32[t, d] {
        rows[t_, j] = table[ids[t_], j];
        picked[i] = x[i, at[i]];
        turned[j, i] = table[ids[i], j];
        both[i] = x[at[i], ids[i]];
        mid[i, j] = cube[i, at[i], j];
    }
"""

INTEGERS = """
    kernel integers(x: i32[n], y: i32[n], u: u32[n], w: u32[n], s: i32 = 3)
        -> a: i32[n], b: i32[n], c: i32[n], d: u32[n], e: u32[n], f: i32[n], g: i32[],
           h: u32[n], k: i32[n], o: i32[n] {
        a[i] = x[i] / y[i] + x[i] % y[i];
        b[i] = x[i] * y[i] + s * 1000003 * x[i];
        c[i] = (x[i] & y[i] | 12) ^ ~x[i];
        d[i] = (u[i] << w[i]) + (u[i] >> 3);
        e[i] = u[i] / w[i] + u[i] % w[i] - u[i] * w[i];
        f[i] = x[i] >> w[i];
        g = sum[i] x[i];
        h[i] = countOneBits(u[i]) + reverseBits(w[i]);
        k[i] = i32(f32(x[i]) * 1000.0);
        o[i] = i32(n) * i32(n) * 100000 * 100000 + i;
    }
"""

STATE = """
    kernel state(mut a: f32[n, n], mut s: f32[], x: f32[n]) -> y: f32[n], z: f32[n] {
        let before[i, j] = a[i, j];
        let was = s;
        a[i, j] = a[j, i];
        s = sum[i, j] a[i, j] * x[i];
        y[i] = sum[j] before[i, j] + was;
        a[i, j] += x[j];
        y[i] += s;
        z[i] = x[i];
    }
"""

LITERALS = """
    const HALF: f32 = 0.5;
    fn scaled(x: f32, k: f32) -> f32 { let e = k; exp(x / k) * e }
    fn two() -> f32 { 2.0 }
    kernel literals(x: f32[n]) -> a: f32[n], b: f32[n], c: f32[n] {
        a[i] = scaled(x[i], 2.0) + scaled(HALF, 4.0) * two();
        b[i] = max(HALF, 0.25) + sqrt(HALF);
        c[i] = f32(i) / 3.0 + f32(n) * HALF;
    }
"""

NAMES = """
    kernel names(query: f32[rows, depth], real: f32[depth, cols], np: f32[cols], ref: i32[rows])
        -> out: f32[rows, cols], range: f32[cols], index: f32[rows] {
        out[row, col] = sum[deep] query[row, deep] * real[deep, col] * np[col];
        range[col] = max[deep] real[deep, col] * np[col];
        index[row] = f32(ref[row]) + f32(row);
    }
"""

HARMLESS = """
    //! {doc}
    const TWO: f32 = 2.0;
    /// {doc}
    fn twice(x: f32) -> f32 {{ TWO * x }}
    /// {doc}
    kernel k(
        /// {doc}
        x: f32[n],
        /// {doc}
        s: f32,
    ) -> y: f32[n], z: f32[n] {{
        y[i] = s * twice(x[i]);
        z[i] = x[i];
    }}
"""
ATTACKS = [
    '"""\nimport os; os.abort() """'.replace("\n", " "),
    '\\"""; raise SystemExit; """',
    'ends with a quote"',
    "ends with a backslash \\",
    '""""""""',
    "{0} {x} %s {{}} \\N{BULLET} \\u0041 \\x00",
    "# a comment; `y` ``` ''' ",
    "no-break\u00a0space, é and 中",
    "long " + "word " * 60 + "x" * 200,
]
