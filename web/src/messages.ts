/** The texts of errors, in the sentences of Python's runtime; what throws them names them. */
import type { Lengths } from "./check.js";
import type { Limits } from "./context.js";
import type { Kind } from "./element.js";
import type { Kernel } from "./kernel.js";
import type { Axis, Check, Element, Range, Requirement, TensorPlan } from "./plan.js";
import type { Planned } from "./planner.js";
import type { Values } from "./sizes.js";
import type { ElementType, Row, StructType, Where } from "./struct.js";
import type { Shape, Tensor } from "./tensor.js";

/** The longest axis: indices are i32. */
const LONGEST = 2 ** 31 - 1;

const IS_NAME = /^[a-z_]\w*$/i;

/** The greatest numbers. */
const FLOATS: Record<string, number> = { f32: (2 - 2 ** -23) * 2 ** 127, f16: 65504 };

export const TEXTS = {
  // Arguments of a call

  ctx: (kernel: Kernel, ctx: unknown) =>
    ctx
      ? `${kernel}: ctx is ${kindOf(ctx)}; expected a context, as await open() returns it.`
      : `${kernel}: no argument is a tensor; pass { ctx } to choose the context.`,
  inputs: (kernel: Kernel, all: readonly any[]) => {
    const { inputs, outputs, scalars } = kernel;
    const given = all.slice(0, all.length - outputs.length);
    const options = scalars.map(([name]) => name).join(", ");
    const [what, names] = options ? ["scalars by name", options] : ["options", "out, ctx"];
    return (
      `${kernel}: expected ${inputs.length} tensors` +
      (given.every((each) => each?.element)
        ? `, got ${given.length}.`
        : `, then ${what}, as { ${names} }; got ${shown(given)}.`)
    );
  },
  tensor: (kernel: Kernel, { access, name, element }: TensorPlan, given: any) =>
    given?.element
      ? `${kernel}: ${roleOf(access)} '${name}' has ${given.element.name} elements; expected ` +
        `${nameOf(element)}.`
      : `${kernel}: ${roleOf(access)} '${name}' is ${kindOf(given)}; expected a tensor. Make one by ` +
        `ctx.tensor(${name}, shape, ` +
        `${typeof element === "string" ? written(element) : element.name}).`,
  context: (kernel: Kernel, { access, name }: TensorPlan) =>
    `${kernel}: ${roleOf(access)} '${name}' belongs to another context; expected that of this ` +
    `call. Read it there and upload it here.`,
  halves: (kernel: Kernel, [name, what]: readonly [string, string]) =>
    `${kernel}: '${name}' ${what}; ` +
    `the device lacks the feature 'shader-f16'.`,
  name: (kernel: Kernel, what: string, name: string, known: readonly string[]) =>
    `${kernel}: there is no ${what} '${name}'; there are ${known.join(", ")}.`,
  axes: (kernel: Kernel, input: number, shapes: readonly Shape[], guards: Lengths) => {
    const [spec, shape] = [kernel.inputs[input]!, shapes[input]!];
    const [before] = matched(kernel, input, 0, shapes, guards);
    if (shape.length !== spec.axes.length)
      return (
        `${begin(kernel, spec, shape)} (rank ${shape.length}); expected ` +
        `${showAxes(kernel, spec, before)} (rank ${spec.axes.length}).`
      );
    const number = spec.axes.findIndex((axis, i) => {
      const [known] = matched(kernel, input, i, shapes, guards);
      const isComputed = kernel.lengths.some(([name]) => name === axis);
      return !isComputed && shape[i] !== (typeof axis === "number" ? axis : (known[axis] ?? Math.min(shape[i]!, LONGEST)));
    });
    const [known, sources] = matched(kernel, input, number, shapes, guards);
    const axis = spec.axes[number]!;
    const why =
      typeof axis === "number"
        ? `axis ${number} is always ${axis}`
        : sources[axis]
          ? `${axis} is ${known[axis]} from ${sources[axis]}`
          : `${axis} is ${shape[number]}, and a dim is at most ${LONGEST}`;
    return `${begin(kernel, spec, shape)}; expected ${showAxes(kernel, spec, before)}: ${why}.`;
  },
  computed: (kernel: Kernel, spec: TensorPlan, shape: Shape, lengths: Lengths) =>
    `${begin(kernel, spec, shape)}; expected ${showAxes(kernel, spec, lengths)}` +
    `${spec.access === "write" ? "" : `: ${kernel.dims.map((dim) => `${dim} is ${lengths[dim]}`).join(", ")}`}.`,
  empty: (kernel: Kernel, { tensor, axis, extent }: Check, lengths: Lengths) =>
    `${kernel}: axis ${axis} of '${tensor}' is gathered from, and it is empty ` +
    `(${showAxis(kernel, extent, lengths)}).`,
  requires: (kernel: Kernel, condition: Requirement, values: Values) => {
    const isOpaque = kernel.computed.some(([name]) => condition.reads.includes(name));
    const why = isOpaque ? `got ${given(kernel, values)}` : figures(condition, values);
    return `${kernel} needs '${condition.text}': ${why}.`;
  },
  length: (kernel: Kernel, text: string, found: bigint, lengths: Lengths) =>
    `${kernel}: the length '${text}' is ${found}; expected 0 to ${LONGEST}. ` +
    `Got ${given(kernel, lengths)}.`,
  ranges: (kernel: Kernel, check: Range, least: bigint, greatest: bigint, size: number, lengths: Lengths) => {
    const { text, tensor, axis, guarded } = check;
    const isBare = IS_NAME.test(text);
    let hint = "";
    if (isBare && guarded)
      hint =
        " A bare index is not clamped, even where a condition guards it; " +
        `write '${text} + 0' to have it clamped there.`;
    else if (isBare && size === 1) hint = " An axis of length 1 is not broadcast.";
    return (
      `${kernel}: the subscript '${text}' of '${tensor}' goes from ${least} to ` +
      `${greatest}, but axis ${axis} has length ${size}. Got ${given(kernel, lengths)}.${hint}`
    );
  },
  overlap: (kernel: Kernel, one: TensorPlan, other: TensorPlan) =>
    `${kernel}: '${one.name}' and '${other.name}' overlap in memory, and ` +
    `'${(one.access === "read" ? other : one).name}' is written. Pass tensors that do not ` +
    `overlap.`,
  hosts: (
    kernel: Kernel,
    [name, type]: Row,
    value: unknown,
    scalars: readonly unknown[],
  ) => {
    const all = kernel.scalars.map(([own], j) => `${own}=${shown(scalars[j])}`);
    return (
      `${kernel}: '${kernel.uniform!.name}.${name}': expected a value of type '${nameOf(type as Element)}', got ` +
      `${value}. Got ${all.join(", ") || "no scalars"}.`
    );
  },

  // What a call runs

  cases: (kernel: Kernel, stage: string | undefined, limits: Limits) =>
    `${kernel}: no schedule of stage '${stage}' fits the adapter, which has ` +
    `${limits["adapter.workgroup_bytes"]} bytes of workgroup memory, ${limits["adapter.invocations"]} invocations ` +
    `and ${limits["adapter.subgroups"] ? "subgroups" : "no subgroups"}.`,
  body: (kernel: Kernel, stage: string, total: number, most: number) =>
    `${kernel}: stage '${stage}' takes ${total} dispatches, one for each step; a call ` +
    `may have ${most}. Make several calls of fewer steps, each of which starts from the end ` +
    `of the last.`,
  bytes: (shape: Shape, nbytes: number, most: number, kernel?: Kernel, spec?: TensorPlan) => {
    const isOwn = !spec || spec.access === "temporary";
    const what = kernel ? `${kernel}: ${isOwn ? "a temporary" : `'${spec.name}'`}` : "A tensor";
    return `${what} of shape ${list(shape)} takes ${nbytes} bytes; the adapter binds at most ${most}.`;
  },
  entries: (kernel: Kernel, { wgsl }: Planned, count: number, most: number) =>
    `${kernel}: '${wgsl}' binds ${count} tensors; the adapter allows ${most}.`,
  terms: (kernel: Kernel, { wgsl }: Planned, counted: number, most: number) =>
    `${kernel}: '${wgsl}' counts to ${counted}; it can count to less than ${most + 1}. ` +
    `Use smaller tensors.`,
  trips: (kernel: Kernel, { wgsl }: Planned, turns: number, most: number) =>
    `${kernel}: '${wgsl}' runs a loop ${turns} times, and this adapter silently stops ` +
    `after ${most}. Use smaller tensors here, or another adapter.`,
  workgroups: (kernel: Kernel, { wgsl }: Planned, groups: number, most: number) =>
    `${kernel}: '${wgsl}' needs ${groups} workgroups; the adapter runs at most ` +
    `${Math.sqrt(most)} x ${Math.sqrt(most)}.`,
  groups: (kernel: Kernel, found: number) =>
    `${kernel}: its plan asks for ${found} workgroups or elements. Run 'kerngen build' ` +
    `again.`,
  exact: (value: bigint) =>
    `A kernel needs ${value} elements, workgroups or turns of a loop, and numbers are exact to ` +
    `2^53. Use smaller tensors.`,

  // Values

  lengths: (where: Where, path: string, value: unknown, shape: Shape) =>
    `${whose(where, path)} is ${shown(value)}; expected ${shape.join(" x ")} values.`,
  fields: (where: Where, path: string, value: unknown, { name }: ElementType) =>
    `${whose(where, path)} is ${shown(value)}; expected a ${name}.`,
  number: (where: Where, path: string, value: unknown, { name, limit }: Kind) =>
    `${whose(where, path)} is ${shown(value)}; expected ` +
    `${limit ? "a number" : "an integer"} (${name}).`,
  limit: (where: Where, path: string, value: unknown, { name, least, most, limit }: Kind) => {
    const what = limit ? `a number beyond the range of ${name}` : `${value}, which no ${name} can`;
    if (where[0] === "value") return `The array holds ${what}.`;
    const range = limit ? `${-FLOATS[name]!} to ${FLOATS[name]}` : `${least} to ${most}`;
    return `${whose(where, path)} is ${shown(value)}; ${name} holds ${range}.`;
  },
  count: (expected: number, got: number) => `Expected ${expected} values, got ${got}.`,
  unpack: ({ name, size }: StructType<any>, got: number) =>
    `'${name}' is unpacked from ${size} bytes each, not ${got}.`,
  element: (given: unknown, values: object | undefined) =>
    `Expected an element type ("f32", "f16", "i32", "u32", "vec3f", ...) or the object of a ` +
    `struct, got ${typeof given === "string" ? given : kindOf(given ?? values)}.`,

  // Tensors

  shape: shapeText,
  buffer: (fits: boolean, nbytes: number, offset: number, size: number) =>
    fits
      ? "A buffer needs the usages STORAGE, COPY_SRC and COPY_DST."
      : `${nbytes} bytes at ${offset} don't fit a buffer of ${size}, in words of 4.`,
  offset: (nbytes: number, offset: number) =>
    `A view of ${nbytes} bytes at byte ${offset} can't be copied: WebGPU copies words of 4.`,
  reshape: (given: Shape, size: number) => {
    const shape = [given].flat();
    if (!shape.every(Number.isInteger)) return shapeText(given);
    const verb = shape.includes(-1) ? "fill" : "fit";
    return `${size} elements do not ${verb} the shape ${list(shape)}.`;
  },
  rows: (start: number, stop: number, count: number | undefined) =>
    count === undefined
      ? "A tensor of rank 0 has no rows."
      : `Rows ${start}:${stop} are not within 0:${count}.`,
  byte: (start: number, stop: number, tensor: Tensor<any>) =>
    `Rows ${start}:${stop} of ${tensor} begin or end in the middle of a byte: two elements of ` +
    `${tensor.element.name} share one.`,
  type: (own: Tensor<any>, other: Tensor<any>) => `Expected a tensor ${own}, got ${other}.`,
  free: (tensor: Tensor<any>) => `${tensor} was freed.`,

  // Contexts and devices

  adapter: (gpu: GPU | undefined) =>
    gpu
      ? "The browser offers no WebGPU adapter."
      : "There is no WebGPU here: use a browser that has it, in a page of https or localhost.",
  reason: (why: string) => `The device is lost (${why}). Open a new context.`,
  close: () => "The context is closed.",
  usage: (nbytes: number, why: string) => `There is no memory for ${nbytes} bytes: ${why}`,
  validation: (why: string) => why,
  compute: (name: string, why: string) => `The shader '${name}' was refused: ${why}`,
  fetch: (url: URL, why: unknown) =>
    `Can't read the shader ${url} (${(why as Error).message ?? why}). Serve the folder 'wgsl' beside its module.`,
  abi: (theirs: number, own: number) =>
    `A generated module is for version ${theirs} of the npm package 'kerngen', and this one ` +
    `is ${own}. Run 'kerngen build' with the kerngen that the package belongs to.`,
};

function shapeText(given: unknown): string {
  return Array.isArray(given)
    ? `Lengths are integers from 0 to 2^31 - 1, not ${list(given)}.`
    : `A shape is an array of integers, got ${shown(given)}.`;
}

/** A shape, with lengths that may have names: `[m=2, 4]`. */
const list = (shape: readonly unknown[]): string => `[${shape.join(", ")}]`;

const nameOf = (element: Element): string =>
  typeof element === "string" ? element : element.name;

const roleOf = (access: TensorPlan["access"]): string => (access === "write" ? "out" : "argument");

const begin = (kernel: Kernel, { access, name }: TensorPlan, shape: Shape): string =>
  `${kernel}: ${roleOf(access)} '${name}' has shape ${list(shape)}`;

/** Name the kind of a value, with an article. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  // A module has no constructor.
  const { name } = (value as object).constructor ?? Object;
  return `${/^[AEIO]/i.test(name) ? "an" : "a"} ${name}`;
}

/** Show a value as one writes it, shortened. */
function shown(value: unknown): string {
  const text = written(value);
  return text.length <= 80 ? text : `${text.slice(0, 76)} ...`;
}

/** Write a value: numbers, arrays and records as in a program, of others the kind. */
function written(value: any, depth = 4): string {
  const common: any = Object.prototype;
  // Of a field that is called `toString` and is missing, each object has something.
  if ([Object, common[value?.name]].includes(value)) return "undefined";
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "string") return JSON.stringify(value);
  if (Object(value) !== value) return String(value);
  const inner = (part: unknown): string => written(part, depth - 1);
  if (depth && Array.isArray(value)) return list(value.map(inner));
  if (depth && value.toString === common.toString)
    return `{ ${Object.entries(value).map(([name, x]) => `${name}: ${inner(x)}`).join(", ")} }`;
  return value.element ? `${value}` : kindOf(value);
}

/** Name a value, or a part of one: `'Ray.from[0]'`. */
function whose([what, name, i]: Where, path: string): string {
  if (what === "struct") return `'${name}${path}'`;
  if (what === "value") return `Value ${i} of ${name}`;
  return `${what}: scalar argument '${name}${path}'`;
}

/** Return the dims that shapes have given before an axis of an input, and where from. */
function matched(
  { inputs, lengths }: Kernel,
  input: number,
  number: number,
  shapes: readonly Shape[],
  guards: Lengths,
): [Lengths, Record<string, string>] {
  // Objects that have nothing else: a dim may be called `constructor`.
  const known = { __proto__: null, ...guards } as unknown as Lengths;
  const sources = { __proto__: null } as unknown as Record<string, string>;
  for (const name in guards) sources[name] = "the argument";
  inputs.slice(0, input + 1).forEach(({ name, axes }, i) => {
    axes.slice(0, i < input ? undefined : number).forEach((axis, j) => {
      if (typeof axis === "number" || axis in known) return;
      if (lengths.some((each) => each[0] === axis)) return;
      known[axis] = shapes[i]![j]!;
      sources[axis] = `'${name}' axis ${j}`;
    });
  });
  return [known, sources];
}

/** Write an axis with its length, if that is known: `m=4`, `h - 4 = 5`. */
function showAxis({ lengths }: Kernel, axis: Axis, known: Lengths): string {
  if (typeof axis === "number") return String(axis);
  const text = lengths.find((each) => each[0] === axis)?.[1] ?? axis;
  if (!(axis in known)) return text;
  return `${text}${IS_NAME.test(text) ? "=" : " = "}${known[axis]}`;
}

const showAxes = (kernel: Kernel, { axes }: TensorPlan, known: Lengths): string =>
  list(axes.map((axis) => showAxis(kernel, axis, known)));

function given(kernel: Kernel, lengths: Lengths): string {
  const { dims, guards } = kernel;
  const known = [...dims, ...guards.filter((each) => !each.includes("."))];
  return known.map((each) => showAxis(kernel, each, lengths)).join(", ") || "no dims";
}

/** Return the numbers that decide a condition: `d is 12, 12 % 8 is 4`. */
function figures({ reads, sides }: Requirement, values: Values): string {
  const known = reads.map((name) => `${name} is ${values[name]}`);
  const computed = sides.map(([text, value]) => {
    const shown = text.replace(/[a-z_][\w.]*(?![\w.(])/gi, (name) => `${values[name]}`);
    return `${shown} is ${value(values)}`;
  });
  return [...known, ...new Set(computed)].join(", ");
}
