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
import type { Axis, Range, TensorPlan } from "./plan.js";
import { valuesOf, type Size, type Values } from "./sizes.js";
import { typeOf } from "./struct.js";
import { sameShape, Tensor, type Shape } from "./tensor.js";

/** The longest axis: indices are i32. */
const LONGEST = 2 ** 31 - 1;

/** Dims by name, and the scalars that guards read. */
export type Lengths = Record<string, number>;

const length = (axis: Axis, lengths: Lengths): number =>
  typeof axis === "number" ? axis : lengths[axis]!;

export const shapeOf = (axes: readonly Axis[], lengths: Lengths): number[] =>
  axes.map((axis) => length(axis, lengths));

/** Return whether a gradient is 0, as it adds up elements of empty tensors alone. */
export const isZero = ({ inputs, seeds }: Kernel, lengths: Lengths): boolean =>
  seeds.length > 0 &&
  inputs
    .filter((each) => seeds.includes(each.name))
    .every((each) => shapeOf(each.axes, lengths).includes(0));

/** Refuse arguments that are no tensors, or that belong to another context. */
export function checkTensors(
  kernel: Kernel,
  ctx: Context,
  specs: readonly TensorPlan[],
  given: readonly unknown[],
  role: "argument" | "out",
): void {
  if (given.length !== specs.length)
    refuse(ShapeError, "tensors", kernel, specs.length, given.length);
  specs.forEach((spec, i) => {
    const tensor = given[i];
    if (tensor === undefined && role === "out") return;
    if (!(tensor instanceof Tensor)) refuse(DtypeError, "noTensor", kernel, role, spec, tensor);
    if (tensor.ctx !== ctx) refuse(ContextError, "elsewhere", kernel, role, spec);
    tensor.check();
    if (tensor.element !== typeOf(spec.element))
      refuse(DtypeError, "elements", kernel, role, spec, tensor);
  });
}

/** Check ranks, dims and subscripts; return all lengths, and the guard scalars. */
export function resolve(kernel: Kernel, shapes: readonly Shape[], guards: Lengths): Lengths {
  const lengths: Lengths = { ...guards };
  const { inputs } = kernel;
  inputs.forEach((spec, i) => {
    const shape = shapes[i]!;
    if (shape.length !== spec.axes.length) refuse(ShapeError, "rank", kernel, i, shapes, guards);
    spec.axes.forEach((axis, number) => {
      if (kernel.lengths.some((each) => each[0] === axis)) return;
      const wanted =
        typeof axis === "number" ? axis : (lengths[axis] ??= Math.min(shape[number]!, LONGEST));
      if (shape[number] !== wanted) refuse(ShapeError, "axis", kernel, i, number, shapes, guards);
    });
  });
  const values = derive(kernel, lengths);
  inputs.forEach((spec, i) => {
    if (!sameShape(shapes[i]!, shapeOf(spec.axes, lengths)))
      refuse(ShapeError, "computed", kernel, spec, shapes[i]!, lengths);
  });
  kernel.ranges.forEach((each) => checkRange(kernel, each, lengths, values));
  for (const each of isZero(kernel, lengths) ? [] : kernel.gathers)
    if (!length(each.extent, lengths) && shapeOf(each.around, lengths).every(Boolean))
      refuse(ShapeError, "empty", kernel, each, lengths);
  return lengths;
}

/** Refuse outputs of other shapes. */
export function checkOut(
  kernel: Kernel,
  lengths: Lengths,
  out: readonly (Tensor<any> | undefined)[],
): void {
  kernel.outputs.forEach((spec, i) => {
    const tensor = out[i];
    if (tensor && !sameShape(tensor.shape, shapeOf(spec.axes, lengths)))
      refuse(ShapeError, "out", kernel, spec, tensor, lengths);
  });
}

/** Add computed lengths; refuse what the kernel does not allow.  Return what sizes read. */
export function derive(kernel: Kernel, lengths: Lengths): Values {
  for (const [name, compute] of kernel.computed) lengths[name] = compute(lengths) as number;
  const values = valuesOf(lengths);
  for (const each of kernel.requires)
    if (!each.holds(values)) {
      const isOfDims = each.reads.some((name) => kernel.dims.includes(name));
      refuse(isOfDims ? ShapeError : ArgumentError, "require", kernel, each, values);
    }
  for (const [name, text, value] of kernel.lengths) {
    const found = (values[name] = value(values));
    if (found < 0n || found > LONGEST) refuse(ShapeError, "length", kernel, text, found, lengths);
    lengths[name] = Number(found);
  }
  return values;
}

function checkRange(kernel: Kernel, check: Range, lengths: Lengths, values: Values): void {
  if (!shapeOf(check.around, lengths).every(Boolean)) return;
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
    refuse(ShapeError, "range", kernel, check, least, greatest, size, lengths);
}
