/** What is checked about the arguments of a call, as Python's runtime does. */
import {
  ArgumentError,
  ContextError,
  DtypeError,
  refuse,
  ShapeError,
} from "./errors.js";
import type { Context } from "./context.js";
import type { Kernel } from "./kernel.js";
import type { Axis, Range } from "./plan.js";
import { LONGEST } from "./element.js";
import { bare, valuesOf, type Size, type Values } from "./sizes.js";
import { typeOf } from "./struct.js";
import { sameShape, Tensor, type Shape } from "./tensor.js";

/** Dims by name, and the scalars that guards read. */
export type Lengths = Record<string, number>;

const length = (axis: Axis, lengths: Lengths): number =>
  lengths[axis] ?? (axis as number);

export const shapeOf = (axes: readonly Axis[], lengths: Lengths): number[] =>
  axes.map((axis) => length(axis, lengths));

/** Refuse arguments that are no tensors, or that belong to another context. */
export const checkTensors = (kernel: Kernel, ctx: Context, given: readonly unknown[]): void => {
  const { args, inputs } = kernel;
  if (given.length !== args.length) refuse(ShapeError, "inputs", kernel, given);
  args.forEach((spec, i) => {
    const tensor = given[i];
    if (tensor === undefined && i >= inputs.length) return;
    if (!(tensor instanceof Tensor && tensor.element === typeOf(spec.element)))
      return refuse(DtypeError, "tensor", kernel, spec, tensor);
    if (tensor.ctx !== ctx) refuse(ContextError, "context", kernel, spec);
    tensor.check();
  });
};

/**
 * Check ranks, dims and subscripts; return all lengths, and the guard scalars.
 *
 * `shapes` are those of inputs, and of outputs that are given.
 */
export const resolve = (
  kernel: Kernel,
  shapes: readonly (Shape | undefined)[],
  guards: Lengths,
): Lengths => {
  const lengths: Lengths = bare(guards);
  kernel.inputs.forEach(({ axes }, i) => {
    const shape = shapes[i]!;
    const fits = axes.every(
      (axis, number) =>
        kernel.lengths.some(([name]) => name === axis) ||
        shape[number] ===
          (typeof axis === "number" ? axis : (lengths[axis] ??= Math.min(shape[number]!, LONGEST))),
    );
    if (!fits || shape.length !== axes.length)
      refuse(ShapeError, "axes", kernel, i, shapes as Shape[], guards);
  });
  const values = derive(kernel, lengths);
  shapes.forEach((shape, i) => {
    const spec = kernel.args[i]!;
    if (shape && !sameShape(shape, shapeOf(spec.axes, lengths)))
      refuse(ShapeError, "computed", kernel, spec, shape, lengths);
  });
  kernel.ranges.forEach((each) => checkRange(kernel, each, lengths, values));
  for (const each of kernel.gathers)
    if (each.empty(values)) refuse(ShapeError, "empty", kernel, each, lengths);
  return lengths;
};

/** Add computed lengths; refuse what the kernel does not allow.  Return what sizes read. */
export const derive = (kernel: Kernel, lengths: Lengths): Values => {
  for (const [name, compute] of kernel.computed) lengths[name] = compute(lengths) as number;
  const values = valuesOf(lengths);
  for (const each of kernel.requires)
    if (!each.holds(values)) {
      const isOfDims = each.reads.some((name) => kernel.dims.includes(name));
      refuse(isOfDims ? ShapeError : ArgumentError, "requires", kernel, each, values);
    }
  for (const [name, text, value] of kernel.lengths) {
    const found = (values[name] = value(values));
    if (found < 0n || found > LONGEST) refuse(ShapeError, "length", kernel, text, found, lengths);
    lengths[name] = Number(found);
  }
  return values;
};

const checkRange = (kernel: Kernel, check: Range, lengths: Lengths, values: Values): void => {
  if (check.runs?.(values) === false) return;
  const wrapped = (size: Size): bigint => BigInt.asIntN(32, size(values));
  let least = check.offset ? wrapped(check.offset) : 0n;
  let greatest = least;
  for (const [extent, by] of check.terms) {
    const span = wrapped(by) * BigInt(length(extent, lengths) - 1);
    if (span < 0n) least += span;
    else greatest += span;
  }
  const size = length(check.extent, lengths);
  if (least < 0n || greatest >= size)
    refuse(ShapeError, "ranges", kernel, check, least, greatest, size, lengths);
};
