// What the page begins with, and others to choose.
export const EXAMPLES = {
  "Softmax": `/// y[i, j] = exp(x[i, j]) / (sum over j of exp(x[i, j])).
kernel softmax(x: f32[m, n]) -> y: f32[m, n] {
    let top[i] = max[j] x[i, j];
    let total[i] = sum[j] exp(x[i, j] - top[i]);
    y[i, j] = exp(x[i, j] - top[i]) / total[i];
}

/// Its gradient, which the compiler derives.
kernel softmax_gradient = gradient of softmax by x given y;
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
  "The game of life": `/// Random cells are 0 to 9: four of ten live.
fn lives(cell: u32) -> u32 {
    if cell > 6 or cell == 1 { 1 } else { 0 }
}

/// One step on a torus.
kernel life(cells: u32[h, w]) -> next: u32[h, w] {
    let near[i < h, j < w] =
        sum[a < 3, b < 3] lives(cells[mod(i + a - 1, h), mod(j + b - 1, w)]);
    next[i, j] =
        if near[i, j] == 3 or near[i, j] == 4 and lives(cells[i, j]) == 1 { 1 } else { 0 };
}
`,
  "An image": `/// The set of Mandelbrot, in colours.
kernel mandelbrot(
    size: u32 = 256,
    zoom: f32 = 2.6,
) -> image: vec3f[size, size] {
    let c[i < size, j < size] =
        vec2f(
            zoom * (f32(j) / f32(size) - 0.7),
            zoom * (f32(i) / f32(size) - 0.5),
        );
    let turns[i < size, j < size] = escape(c[i, j]);
    image[i, j] = vec3f(turns[i, j], turns[i, j] * turns[i, j], sqrt(turns[i, j]));
}

/// How soon z * z + c leaves a circle, in 8 turns of a wheel.
fn escape(c: vec2f) -> f32 {
    let a = turn(turn(turn(turn(c, c), c), c), c);
    let b = turn(turn(turn(turn(a, c), c), c), c);
    exp(-0.5 * min(length(b), 20.0))
}

fn turn(z: vec2f, c: vec2f) -> vec2f {
    let w = clamp(z, vec2f(-4.0), vec2f(4.0));
    vec2f(w.x * w.x - w.y * w.y, 2.0 * w.x * w.y) + c
}
`,
  "Structs": `/// A ball in space.
struct Ball {
    at: vec3f,
    mass: f32,
    speed: vec3f,
}

/// One step under gravity.
kernel fall(balls: Ball[n], step: f32 = 0.01) -> next: Ball[n] {
    next[i].at = balls[i].at + step * balls[i].speed;
    next[i].mass = balls[i].mass;
    next[i].speed = balls[i].speed - step * vec3f(0.0, 9.81, 0.0);
}

/// The mean of all places, by mass.
kernel centre(balls: Ball[n]) -> c: f32[3] {
    let total = sum[i] balls[i].mass;
    c[k] = (sum[i] balls[i].mass * balls[i].at[k]) / total;
}
`,
};
