// Random arguments for a kernel, the same for a seed.

// A generator of numbers from 0 to 1: mulberry32.
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const LANES = /^(?:vec(\d)|mat(\d)x(\d))/;

/** Upload a tensor for each input; floats are from -1 to 1, integers below 10. */
export function draw(ctx, plan, dims, seed) {
  const random = generator(seed);
  return plan.inputs.map(({ name, element, axes }) => {
    if (!/^([fiu]32|f16|vec|mat)/.test(element))
      throw new Error(`'${name}' has elements of a struct: call this kernel from a page.`);
    const shape = axes.map((axis) => (typeof axis === "number" ? axis : dims[axis]));
    const [, width, columns, rows] = LANES.exec(element) ?? [];
    const lanes = Number(width ?? 1) * Number(columns ?? 1) * Number(rows ?? 1);
    const count = shape.reduce((a, b) => a * b, 1) * lanes;
    const whole = /^([iu]32|vec\d[iu])/.test(element);
    const number = () => (whole ? Math.floor(random() * 10) : random() * 2 - 1);
    return ctx.tensor(Array.from({ length: count }, number), shape, element);
  });
}
