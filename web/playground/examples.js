// What the page begins with.
export const EXAMPLES = {
  "Softmax": `/// y[i, j] = exp(x[i, j]) / (sum over j of exp(x[i, j])).
kernel softmax(x: f32[m, n]) -> y: f32[m, n] {
    let top[i] = max[j] x[i, j];
    let total[i] = sum[j] exp(x[i, j] - top[i]);
    y[i, j] = exp(x[i, j] - top[i]) / total[i];
}
`,
  "A product of matrices": `/// c = a b.
kernel product(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[i, p] * b[p, j];
}
`,
  "Waves": `/// Two waves that cross.
kernel waves(x: f32[m, n], u: f32 = 0.4, v: f32 = 0.25) -> y: f32[m, n] {
    y[i, j] = sin(u * f32(i)) * cos(v * f32(j)) + 0.2 * x[i, j];
}
`,
};
