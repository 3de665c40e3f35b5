/** What is checked about the arguments of a call, in the sentences of Python's runtime. */
import { ArgumentError, ContextError, DtypeError, FeatureError, ShapeError } from "./errors.js";
import type { Context } from "./context.js";
import type { Kernel } from "./kernel.js";
import type { Axis, Check, TensorPlan } from "./plan.js";
import { evaluate, exact, figures, holds, names, type Values } from "./size.js";
import { holdsHalf } from "./struct.js";
import { Tensor, tuple, type Shape } from "./tensor.js";

/** The longest axis: indices are i32. */
const LONGEST = 2 ** 31 - 1;

/** Dims by name, and the scalars that guards read. */
export type Lengths = Record<string, number>;

const length = (axis: Axis, lengths: Lengths): number =>
  typeof axis === "number" ? axis : lengths[axis]!;

export const shapeOf = (axes: readonly Axis[], lengths: Lengths): number[] =>
  axes.map((axis) => length(axis, lengths));

/** Name the kind of a value, with an article. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  const { name } = (value as object).constructor;
  return `${/^[AEIO]/i.test(name) ? "an" : "a"} ${name}`;
}

/** Refuse arguments that are no tensors, or that belong to another context. */
export function checkTensors(
  kernel: Kernel,
  ctx: Context,
  specs: readonly TensorPlan[],
  given: readonly unknown[],
  role: string,
): void {
  const { place } = kernel.plan;
  if (given.length !== specs.length)
    throw new ShapeError(`${place}: expected ${specs.length} tensors, got ${given.length}.`);
  specs.forEach((spec, i) => {
    const tensor = given[i];
    if (tensor === undefined && role === "out") return;
    const what = `${place}: ${role} '${spec.name}'`;
    if (!(tensor instanceof Tensor))
      throw new DtypeError(
        `${what} is ${kindOf(tensor)}; expected a tensor. Make one by ` +
          `ctx.tensor(${spec.name}, shape, ${JSON.stringify(spec.element)}).`,
      );
    if (tensor.ctx !== ctx)
      throw new ContextError(
        `${what} belongs to another context; expected that of this call. Read it there and ` +
          `upload it here.`,
      );
    tensor.check();
    const expected = kernel.element(spec);
    if (tensor.element !== expected)
      throw new DtypeError(
        `${what} has ${tensor.element.name} elements; expected ${expected.name}.`,
      );
  });
}

/** Refuse what the device can't keep. */
export function checkFeatures(kernel: Kernel, ctx: Context): void {
  if (ctx.limits.f16) return;
  const { inputs, outputs, temporaries, place } = kernel.plan;
  const halves = [
    ...[...inputs, ...outputs, ...temporaries].map((x) => [x.name, kernel.element(x)] as const),
    ...kernel.scalars,
  ];
  for (const [name, type] of halves)
    if (holdsHalf(type))
      throw new FeatureError(
        `${place}: '${name}' ${type.name === "f16" ? "has f16 elements" : "holds f16 numbers"}; ` +
          `the device lacks the feature 'shader-f16'.`,
      );
}

/** Check ranks, dims and subscripts; return all lengths, and the guard scalars. */
export function resolve(
  kernel: Kernel,
  shapes: readonly Shape[],
  guards: Lengths,
): Lengths {
  const { plan } = kernel;
  const lengths: Lengths = { ...guards };
  const sources: Record<string, string> = {};
  for (const name in guards) sources[name] = "the argument";
  plan.inputs.forEach((spec, i) => matchShape(kernel, spec, shapes[i]!, lengths, sources));
  derive(kernel, lengths);
  plan.inputs.forEach((spec, i) => matchComputed(kernel, spec, shapes[i]!, lengths));
  plan.ranges.forEach((each) => checkRange(kernel, each, lengths));
  for (const { tensor, axis, extent, around } of plan.gathers)
    if (!length(extent, lengths) && shapeOf(around, lengths).every(Boolean))
      throw new ShapeError(
        `${plan.place}: axis ${axis} of '${tensor}' is gathered from, and it is empty ` +
          `(${showAxis(kernel, extent, lengths)}).`,
      );
  return lengths;
}

/** Refuse outputs of other shapes. */
export function checkOut(
  kernel: Kernel,
  lengths: Lengths,
  out: readonly (Tensor<any> | undefined)[],
): void {
  kernel.plan.outputs.forEach((spec, i) => {
    const tensor = out[i];
    if (tensor && String(tensor.shape) !== String(shapeOf(spec.axes, lengths)))
      throw new ShapeError(
        `${kernel.plan.place}: out '${spec.name}' has shape ${tuple(tensor.shape)}; expected ` +
          `${showAxes(kernel, spec, lengths)}.`,
      );
  });
}

function matchShape(
  kernel: Kernel,
  spec: TensorPlan,
  shape: Shape,
  lengths: Lengths,
  sources: Record<string, string>,
): void {
  const known = { ...lengths };
  const start =
    `${kernel.plan.place}: argument '${spec.name}' has shape ${tuple(shape)}`;
  const wanted = (): string => showAxes(kernel, spec, known);
  if (shape.length !== spec.axes.length)
    throw new ShapeError(
      `${start} (rank ${shape.length}); expected ${wanted()} (rank ${spec.axes.length}).`,
    );
  spec.axes.forEach((axis, number) => {
    if (kernel.plan.lengths.some((each) => each.name === axis)) return;
    const actual = shape[number]!;
    let [expected, reason] = [axis as number, `axis ${number} is always ${axis}`];
    if (typeof axis === "string") {
      const source = sources[axis];
      if (source) [expected, reason] = [lengths[axis]!, `${axis} is ${lengths[axis]} from ${source}`];
      else {
        lengths[axis] = actual;
        sources[axis] = `'${spec.name}' axis ${number}`;
        expected = Math.min(actual, LONGEST);
        reason = `${axis} is ${actual}, and a dim is at most ${LONGEST}`;
      }
    }
    if (actual !== expected) throw new ShapeError(`${start}; expected ${wanted()}: ${reason}.`);
  });
}

/** Refuse axes that are not as long as the kernel computes: `(d + 31) / 32`. */
function matchComputed(
  kernel: Kernel,
  spec: TensorPlan,
  shape: Shape,
  lengths: Lengths,
): void {
  if (String(shape) === String(shapeOf(spec.axes, lengths))) return;
  const known = kernel.plan.dims.map((dim) => `${dim} is ${lengths[dim]}`);
  throw new ShapeError(
    `${kernel.plan.place}: argument '${spec.name}' has shape ${tuple(shape)}; expected ` +
      `${showAxes(kernel, spec, lengths)}: ${known.join(", ")}.`,
  );
}

/** Add computed lengths; refuse what the kernel does not allow. */
export function derive(kernel: Kernel, lengths: Lengths): void {
  const { plan } = kernel;
  const values: Values = lengths;
  const computed = kernel.computed?.(lengths) ?? [];
  plan.computed.forEach((name, i) => (values[name] = computed[i]!));
  for (const { text, value } of plan.requires) {
    if (holds(value, values)) continue;
    const read = [...names(value)];
    const refused = read.some((each) => plan.dims.includes(each)) ? ShapeError : ArgumentError;
    const opaque = read.some((each) => plan.computed.includes(each));
    const why = opaque ? `got ${given(kernel, lengths)}` : figures(value, values);
    throw new refused(`${plan.place} needs '${text}': ${why}.`);
  }
  for (const { name, text, value } of plan.lengths) {
    const found = exact(value, values);
    if (found < 0n || found > LONGEST)
      throw new ShapeError(
        `${plan.place}: the length '${text}' is ${found}; expected 0 to ${LONGEST}. ` +
          `Got ${given(kernel, lengths)}.`,
      );
    lengths[name] = evaluate(value, values);
  }
}

function checkRange(kernel: Kernel, check: Check, lengths: Lengths): void {
  if (!shapeOf(check.around, lengths).every(Boolean)) return;
  let least = BigInt.asIntN(32, exact(check.offset, lengths));
  let greatest = least;
  for (const [extent, coefficient] of check.terms) {
    const span =
      BigInt.asIntN(32, exact(coefficient, lengths)) * BigInt(length(extent, lengths) - 1);
    if (span < 0n) least += span;
    else greatest += span;
  }
  const size = length(check.extent, lengths);
  if (least >= 0n && greatest < size) return;
  let hint = "";
  if (/^\w+$/.test(check.text) && check.guarded)
    hint =
      " A bare index is not clamped, even where a condition guards it; " +
      `write '${check.text} + 0' to have it clamped there.`;
  else if (/^\w+$/.test(check.text) && size === 1)
    hint = " An axis of length 1 is not broadcast.";
  throw new ShapeError(
    `${kernel.plan.place}: the subscript '${check.text}' of '${check.tensor}' goes from ` +
      `${least} to ${greatest}, but axis ${check.axis} has length ${size}. ` +
      `Got ${given(kernel, lengths)}.${hint}`,
  );
}

/** Write an axis with its length, if that is known: `m=4`, `h - 4 = 5`. */
function showAxis({ plan }: Kernel, axis: Axis, lengths: Lengths): string {
  if (typeof axis === "number") return String(axis);
  const text = plan.lengths.find((each) => each.name === axis)?.text ?? axis;
  if (!(axis in lengths)) return text;
  return `${text}${/^\w+$/.test(text) ? "=" : " = "}${lengths[axis]}`;
}

const showAxes = (kernel: Kernel, spec: TensorPlan, lengths: Lengths): string =>
  tuple(spec.axes.map((axis) => showAxis(kernel, axis, lengths)));

function given(kernel: Kernel, lengths: Lengths): string {
  const { dims, guards } = kernel.plan;
  const known = [...dims, ...guards.filter((each) => !each.includes("."))];
  return known.map((each) => showAxis(kernel, each, lengths)).join(", ") || "no dims";
}
