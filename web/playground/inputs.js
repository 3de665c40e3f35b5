// Arguments for a kernel: random ones, the same for a seed, or others that one chooses.
import { typeOf } from "./kerngen/struct.js";

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

/** How an input can be filled: a function of a place, and of random numbers, for each. */
export const FILLS = {
  random: (_, random, whole) => (whole ? Math.floor(random() * 10) : random() * 2 - 1),
  zeros: () => 0,
  ones: () => 1,
  "0, 1, 2, ...": (i) => i,
};

/** The name of the choice of one's own numbers. */
export const OWN = "these:";

const isWhole = (kind) => !kind.limit;

// A value of a type, with `lengths` if it is an array: each number by `next`.
function value(type, lengths, next) {
  const shape = "fields" in type ? lengths : [...lengths, ...type.shape];
  const go = (axis) =>
    axis < shape.length
      ? Array.from({ length: shape[axis] }, () => go(axis + 1))
      : "fields" in type
        ? record(type, next)
        : next(isWhole(type.kind));
  return go(0);
}

function record(type, next) {
  const fields = type.fields.map(([name, of, , lengths]) => [name, value(typeOf(of), lengths ?? [], next)]);
  return Object.fromEntries(fields);
}

/** Write a value of ones, of a vector, a matrix or a struct: as JSON. */
export const ones = (of) => JSON.stringify(value(typeOf(of), [], () => 1)).replaceAll(",", ", ");

/** Read numbers that somebody typed: between commas, spaces or brackets. */
export function numbers(text) {
  const found = text.split(/[\s,;[\]()]+/).filter(Boolean).map(Number);
  if (found.some(Number.isNaN)) throw new TypeError(`'${text}' is not a list of numbers.`);
  return found;
}

/** Upload a tensor for each input; `fills` has a choice for each, and numbers of one's own. */
export function draw(ctx, kernel, dims, seed, fills) {
  const random = generator(seed);
  return kernel.inputs.map((spec) => {
    const type = typeOf(spec.element);
    const shape = spec.axes.map((axis) => (typeof axis === "number" ? axis : dims[axis]));
    const count = shape.reduce((a, b) => a * b, 1);
    ctx.empty(shape, spec.element).free(); // refuses what there is no room for
    const { fill, own } = fills[spec.name];
    let at = 0;
    const next = (whole) => FILLS[fill](at++, random, whole);
    if ("fields" in type) {
      if (fill === OWN) throw new TypeError(`'${spec.name}' has structs; choose another fill.`);
      return ctx.tensor(Array.from({ length: count }, () => record(type, next)), shape, type);
    }
    const lanes = type.shape.reduce((a, b) => a * b, 1);
    const values =
      fill === OWN
        ? repeated(numbers(own), count * lanes)
        : Array.from({ length: count * lanes }, () => next(isWhole(type.kind)));
    return ctx.tensor(values, shape, spec.element);
  });
}

// Numbers of one's own begin anew where there are too few.
function repeated(values, count) {
  if (!values.length && count) throw new TypeError("There are no numbers.");
  return Array.from({ length: count }, (_, i) => values[i % values.length]);
}
