/** From a kernel's plan to the dispatches of one call: every choice is made, once. */
import { shapeOf, type Lengths } from "./check.js";
import type { Context } from "./context.js";
import { FeatureError, KerngenError, LimitError, refuse } from "./errors.js";
import type { Kernel } from "./kernel.js";
import type { Case, Choice, More, Repeat, Step as PlanStep } from "./plan.js";
import { evaluate, valuesOf, type Size, type Values } from "./sizes.js";
import type { Compiled, Shaders } from "./shaders.js";
import { typeOf, type ElementType } from "./struct.js";
import { product } from "./element.js";
import { roundUp, type Shape } from "./tensor.js";

/** The most dispatches of one call: each is recorded, and takes some microseconds. */
const MOST_DISPATCHES = 4096;
/** Above this, a lane's counter and its stride might pass 32 bits. */
const MOST_TERMS = 2 ** 31;

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
export function select(kernel: Kernel, lengths: Lengths, ctx: Context): Selection {
  const { workgroupBytes, invocations, subgroups, f16 } = ctx.limits;
  const values = valuesOf({
    ...lengths,
    "adapter.workgroup_bytes": workgroupBytes,
    "adapter.invocations": invocations,
    "adapter.subgroups": Number(subgroups),
    "adapter.f16": Number(f16),
  });
  const found: Selection = { values, dispatches: [], scratch: [] };
  const applies = (each: Case): boolean =>
    (each.bytes ?? 0) <= workgroupBytes &&
    (each.invocations ?? 0) <= invocations &&
    (subgroups || !each.subgroups) &&
    (!each.when || each.when(values));
  const choose = ({ cases, stages }: Choice): Case =>
    cases.find(applies) ?? refuse(LimitError, "unfit", kernel, stages?.[0], ctx.limits);
  const repeat = ({ count, body }: Repeat, scratch: Scratch, stage: string): void => {
    const times = Math.max(evaluate(count, values), 0);
    const total = found.dispatches.length + times * body.length;
    if (total > MOST_DISPATCHES)
      refuse(LimitError, "dispatches", kernel, stage, total, MOST_DISPATCHES);
    for (let i = 0; i < times; i++) walk(body, scratch, stage);
  };
  const walk = (body: readonly PlanStep[], scratch: Scratch, stage: string): void => {
    for (const step of body) {
      if ("length" in step) {
        const [wgsl, bound, groups, more] = step;
        const access = bound.replace(/[^ *]+(\*?) ?/g, (_, star) => (star ? "w" : "r"));
        const bindings = bound.replaceAll("*", "").split(" ");
        found.dispatches.push({ ...more, wgsl, bindings, access, groups, scratch });
      } else if ("count" in step) repeat(step, scratch, stage);
      else {
        const chosen = choose(step);
        const own = { ...scratch };
        for (const each of chosen.scratch ?? []) own[each[0]] = found.scratch.push(each) - 1;
        walk(chosen.body, own, step.stages?.[0] ?? stage);
      }
    }
  };
  walk(kernel.body, {}, "");
  return found;
}

/** Return the dispatches that have workgroups, with their number. */
export function recorded(
  kernel: Kernel,
  { dispatches, values }: Selection,
): (readonly [Planned, number])[] {
  return dispatches
    .map((each) => [each, count(kernel, each.groups, values)] as const)
    .filter(([, groups]) => groups);
}

/** Make the plan of a call. */
export function makePlan(
  kernel: Kernel,
  lengths: Lengths,
  ctx: Context,
  shaders: Shaders,
): CallPlan {
  const [half] = ctx.limits.f16 ? [] : kernel.halves;
  if (half) refuse(FeatureError, "half", kernel, half);
  const selection = select(kernel, lengths, ctx);
  const bound = new Set(selection.dispatches.flatMap((each) => each.bindings));
  const temporaries = kernel.temporaries.filter((each) => bound.has(each.name));
  const named = [...kernel.inputs, ...kernel.outputs, ...temporaries];
  const sizes = named.map((spec) => {
    const shape = shapeOf(spec.axes, lengths);
    const what = spec.access === "temporary" ? "a temporary" : `'${spec.name}'`;
    return checkSize(kernel, what, shape, typeOf(spec.element).size, ctx);
  });
  const scratch = selection.scratch.map(([, length]) =>
    checkSize(kernel, "a temporary", [count(kernel, length, selection.values)], 4, ctx),
  );
  const uniformBytes = kernel.uniform?.size ?? 0;
  const running = recorded(kernel, selection);
  const steps = running.map(([dispatch, groups]): Step => {
    checkDispatch(kernel, dispatch, selection.values, ctx);
    const [x, y] = fold(kernel, dispatch, groups, ctx.limits.workgroups);
    const slots = dispatch.bindings.map((name) =>
      name in dispatch.scratch
        ? named.length + dispatch.scratch[name]!
        : named.findIndex((each) => each.name === name),
    );
    const bytes = dispatch.uniform === false ? 0 : uniformBytes;
    const shader = shaders.get(dispatch, kernel.shader, bytes);
    return { shader, slots, access: dispatch.access, x, y };
  });
  const args = named.length - temporaries.length;
  const usesUniform = steps.some((each) => each.shader.usesUniform);
  const unit = ctx.device.limits.minUniformBufferOffsetAlignment;
  return {
    lengths,
    steps,
    outputs: kernel.outputs.map((x) => [typeOf(x.element), shapeOf(x.axes, lengths)]),
    inner: steps.length ? [...sizes.slice(args), ...scratch] : [],
    stride: usesUniform ? roundUp(uniformBytes, unit) : 0,
  };
}

function checkSize(
  kernel: Kernel,
  what: string,
  shape: Shape,
  size: number,
  { limits }: Context,
): number {
  const nbytes = Math.ceil(product(shape) * size);
  if (roundUp(nbytes, 16) > limits.tensorBytes)
    refuse(LimitError, "large", kernel, what, shape, nbytes, limits.tensorBytes);
  return Math.max(nbytes, size);
}

function checkDispatch(
  kernel: Kernel,
  dispatch: Planned,
  values: Values,
  { limits }: Context,
): void {
  if (dispatch.bindings.length > limits.storageBuffers)
    refuse(LimitError, "bindings", kernel, dispatch, limits.storageBuffers);
  const counted = evaluate(dispatch.terms, values);
  if (counted >= MOST_TERMS) refuse(LimitError, "terms", kernel, dispatch, counted, MOST_TERMS);
  const turns = evaluate(dispatch.trips, values);
  if (turns > limits.loopTurns)
    refuse(LimitError, "turns", kernel, dispatch, turns, limits.loopTurns);
}

/** Return the workgroups in x and y; shaders skip what is beyond the total. */
export function fold(
  kernel: Kernel,
  dispatch: Planned,
  groups: number,
  limit: number,
): [number, number] {
  if (groups > limit * limit) refuse(LimitError, "workgroups", kernel, dispatch, groups, limit);
  const y = Math.ceil(groups / limit);
  return [Math.ceil(groups / y), y];
}

function count(kernel: Kernel, size: Size, values: Values): number {
  const found = evaluate(size, values);
  return found >= 0 ? found : refuse(KerngenError, "negative", kernel, found);
}
