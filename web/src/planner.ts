/** From a kernel's plan to the dispatches of one call: every choice is made, once. */
import { shapeOf, type Lengths } from "./check.js";
import type { Context, Limits } from "./context.js";
import { FeatureError, KerngenError, LimitError, refuse } from "./errors.js";
import type { Kernel } from "./kernel.js";
import type { Case, More, Step as PlanStep, TensorPlan } from "./plan.js";
import { evaluate, valuesOf, type Size, type Values } from "./sizes.js";
import type { Compiled, Shaders } from "./shaders.js";
import { typeOf, type ElementType } from "./struct.js";
import { LONGEST, product, roundUp } from "./element.js";
import { boundBytes, type Shape } from "./tensor.js";

/** The most dispatches of one call: each is recorded, and takes some microseconds. */
const MOST_DISPATCHES = 4096;

/** One dispatch; `slots` are the numbers of the tensors that it binds, `access` how. */
export interface Step {
  readonly shader: Compiled;
  readonly slots: readonly number[];
  readonly access: string;
  readonly x: number;
  readonly y: number;
}

/** A kernel's steps for some shapes; slots number inputs, outputs, and what is inside. */
export interface CallPlan {
  readonly lengths: Lengths;
  readonly steps: readonly Step[];
  readonly outputs: readonly (readonly [ElementType, Shape])[];
  /** The bytes of each temporary and scratch buffer. */
  readonly inner: readonly number[];
  /** What the uniform struct takes in the arena; 0 if no step reads one. */
  readonly stride: number;
}

/** The numbers of scratch buffers, by their names. */
type Scratch = Readonly<Record<string, number>>;

/** A dispatch of a call. */
export interface Planned extends More {
  readonly wgsl: string;
  readonly bindings: readonly string[];
  /** For each binding, `w` if the shader writes it, else `r`. */
  readonly access: string;
  readonly groups: Size;
  readonly scratch: Scratch;
}

/** What a call runs, in order. */
export interface Selection {
  /** What sizes read. */
  readonly values: Values;
  readonly dispatches: Planned[];
  readonly scratch: (readonly [string, Size])[];
}

/** Return what a plan runs for the lengths and scalars of a call. */
export const select = (kernel: Kernel, lengths: Lengths, { limits }: Context): Selection => {
  const values = valuesOf({ ...limits, ...lengths });
  const dispatches: Planned[] = [];
  const scratch: Selection["scratch"] = [];
  // What a case does not ask for is undefined, which is no more than any limit.
  const applies = (each: Case): unknown =>
    !(each.bytes! > limits["adapter.workgroup_bytes"]) &&
    !(each.invocations! > limits["adapter.invocations"]) &&
    (!each.subgroups || limits["adapter.subgroups"]) &&
    (!each.when || each.when(values));
  const walk = (body: readonly PlanStep[], known: Scratch, stage: string): void => {
    for (const step of body) {
      if ("length" in step) {
        const [wgsl, bound, groups, more] = step;
        const marked = bound.split(" ");
        const access = marked.map((each) => (each.endsWith("*") ? "w" : "r")).join("");
        const bindings = marked.map((each) => each.replace("*", ""));
        dispatches.push({ ...more, wgsl, bindings, access, groups, scratch: known });
      } else if ("count" in step) {
        const times = evaluate(step.count, values);
        const total = dispatches.length + times * step.body.length;
        if (total > MOST_DISPATCHES)
          refuse(LimitError, "body", kernel, stage, total, MOST_DISPATCHES);
        for (let i = 0; i < times; i++) walk(step.body, known, stage);
      } else {
        const named = step.stages?.[0];
        const chosen =
          step.cases.find(applies) ?? refuse(LimitError, "cases", kernel, named, limits);
        const own = { ...known };
        for (const each of chosen.scratch ?? []) own[each[0]] = scratch.push(each) - 1;
        walk(chosen.body, own, named ?? stage);
      }
    }
  };
  walk(kernel.body, {}, "");
  return { values, dispatches, scratch };
};

/** Make the plan of a call. */
export const makePlan = (
  kernel: Kernel,
  lengths: Lengths,
  ctx: Context,
  shaders: Shaders,
): CallPlan => {
  const { limits } = ctx;
  const [half] = limits["adapter.f16"] ? [] : kernel.halves;
  if (half) refuse(FeatureError, "halves", kernel, half);
  const { dispatches, scratch, values } = select(kernel, lengths, ctx);
  const bound = new Set(dispatches.flatMap((each) => each.bindings));
  const { args } = kernel;
  const named = [...args, ...kernel.temporaries.filter((each) => bound.has(each.name))];
  const bytesFor = (shape: Shape, size: number, spec?: TensorPlan): number =>
    Math.max(checkedBytes(limits, shape, size, kernel, spec), size);
  const sizes = [
    ...named.map((spec) => bytesFor(shapeOf(spec.axes, lengths), typeOf(spec.element).size, spec)),
    ...scratch.map(([, length]) => bytesFor([count(kernel, length, values)], 4)),
  ];
  const uniformBytes = kernel.uniform?.size ?? 0;
  const running = kernel.zero?.(values) ? [] : dispatches;
  const steps = running.flatMap((dispatch): Step[] => {
    const { bindings, access, scratch: own, uniform } = dispatch;
    const groups = count(kernel, dispatch.groups, values);
    if (!groups) return [];
    const [x, y] = workgroupsOf(kernel, dispatch, groups, values, limits);
    const slots = bindings.map((name) =>
      // A tensor may be called `constructor`, of which each object has one.
      own[name]! >= 0 ? named.length + own[name]! : named.findIndex((each) => each.name === name),
    );
    const shader = shaders(dispatch, kernel.shader, uniform === false ? 0 : uniformBytes);
    return [{ shader, slots, access, x, y }];
  });
  return {
    lengths,
    steps,
    outputs: kernel.outputs.map((x) => [typeOf(x.element), shapeOf(x.axes, lengths)]),
    inner: steps.length ? sizes.slice(args.length) : [],
    stride: roundUp(uniformBytes, ctx.device.limits.minUniformBufferOffsetAlignment),
  };
};

/** Return the bytes of a tensor, or of what a kernel has of its own, that the adapter can bind. */
export const checkedBytes = (
  { "adapter.tensor_bytes": tensorBytes }: Limits,
  shape: Shape,
  size: number,
  kernel?: Kernel,
  spec?: TensorPlan,
): number => {
  const nbytes = Math.ceil(product(shape) * size);
  if (boundBytes(nbytes) > tensorBytes)
    refuse(LimitError, "bytes", shape, nbytes, tensorBytes, kernel, spec);
  return nbytes;
};

/** Return the workgroups of a dispatch in x and y; shaders skip what is beyond the total. */
const workgroupsOf = (
  kernel: Kernel,
  dispatch: Planned,
  groups: number,
  values: Values,
  { storageBuffers, loopTurns, workgroups }: Limits,
): [number, number] => {
  const deny = (
    text: "entries" | "terms" | "trips" | "workgroups",
    found: number,
    most: number | undefined,
  ): false | never => found > most! && refuse(LimitError, text, kernel, dispatch, found, most!);
  deny("entries", dispatch.bindings.length, storageBuffers);
  deny("terms", evaluate(dispatch.terms, values), LONGEST);
  deny("trips", evaluate(dispatch.trips, values), loopTurns);
  deny("workgroups", groups, workgroups * workgroups);
  const y = Math.ceil(groups / workgroups);
  return [Math.ceil(groups / y), y];
};

const count = (kernel: Kernel, size: Size, values: Values): number => {
  const found = evaluate(size, values);
  return found >= 0 ? found : refuse(KerngenError, "groups", kernel, found);
};
