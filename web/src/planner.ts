/** From a kernel's plan to the dispatches of one call: every choice is made, once. */
import { checkFeatures, shapeOf, type Lengths } from "./check.js";
import type { Context } from "./context.js";
import { KerngenError, LimitError } from "./errors.js";
import type { Kernel } from "./kernel.js";
import type { Case, Choice, Dispatch, Repeat, Step as PlanStep } from "./plan.js";
import { evaluate, holds, show, type Size } from "./size.js";
import type { Compiled, Shaders } from "./shaders.js";
import type { ElementType } from "./struct.js";
import { product, roundUp, tuple, type Shape } from "./tensor.js";

/** The most dispatches of one call: each is recorded, and takes some microseconds. */
const MOST_DISPATCHES = 4096;
/** Above this, a lane's counter and its stride might pass 32 bits. */
const MOST_TERMS = 2 ** 31;

/** One dispatch; `slots` are the numbers of the tensors that it binds. */
export interface Step {
  readonly shader: Compiled;
  readonly slots: readonly number[];
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
  /** Pairs of arguments of which one is written. */
  readonly conflicts: readonly (readonly [number, number])[];
  /** Those of them that may not even be in one buffer, as `i,j`. */
  readonly mixed: ReadonlySet<string>;
  /** What the uniform struct takes in the arena; 0 if no step reads one. */
  readonly stride: number;
}

/** A dispatch of a call, with the numbers of its scratch buffers. */
interface Planned {
  readonly dispatch: Dispatch;
  readonly scratch: Readonly<Record<string, number>>;
}

/** What a call runs, in order. */
export interface Selection {
  readonly dispatches: Planned[];
  readonly scratch: (readonly [string, Size])[];
}

/** Return what a plan runs for the lengths and scalars of a call. */
export function select({ plan }: Kernel, lengths: Lengths, ctx: Context): Selection {
  const { workgroupBytes, invocations, subgroups, f16 } = ctx.limits;
  const values = {
    ...lengths,
    "adapter.workgroup_bytes": workgroupBytes,
    "adapter.invocations": invocations,
    "adapter.subgroups": Number(subgroups),
    "adapter.f16": Number(f16),
  };
  const found: Selection = { dispatches: [], scratch: [] };
  const applies = (each: Case): boolean =>
    each.bytes <= workgroupBytes &&
    each.invocations <= invocations &&
    (subgroups || !each.subgroups) &&
    holds(each.when, values);
  const choose = ({ cases, stages }: Choice): Case => {
    const chosen = cases.find(applies);
    if (chosen) return chosen;
    throw new LimitError(
      `${plan.place}: no schedule of stage '${stages[0]}' fits the adapter, which has ` +
        `${workgroupBytes} bytes of workgroup memory, ${invocations} invocations and ` +
        `${subgroups ? "subgroups" : "no subgroups"}.`,
    );
  };
  const repeat = ({ count, body }: Repeat, scratch: Planned["scratch"], stage: string): void => {
    const times = Math.max(evaluate(count, values), 0);
    const total = found.dispatches.length + times * body.length;
    if (total > MOST_DISPATCHES)
      throw new LimitError(
        `${plan.place}: stage '${stage}' takes ${total} dispatches, one for each step; a call ` +
          `may have ${MOST_DISPATCHES}. Make several calls of fewer steps, each of which ` +
          `starts from the end of the last.`,
      );
    for (let i = 0; i < times; i++) walk(body, scratch, stage);
  };
  const walk = (body: readonly PlanStep[], scratch: Planned["scratch"], stage: string): void => {
    for (const step of body) {
      if ("wgsl" in step) found.dispatches.push({ dispatch: step, scratch });
      else if ("count" in step) repeat(step, scratch, stage);
      else {
        const chosen = choose(step);
        const own = { ...scratch };
        for (const each of chosen.scratch) own[each[0]] = found.scratch.push(each) - 1;
        walk(chosen.body, own, step.stages[0] ?? stage);
      }
    }
  };
  walk(plan.body, {}, "");
  return found;
}

/** Return the dispatches that have workgroups, with their number. */
export function recorded(
  kernel: Kernel,
  { dispatches }: Selection,
  lengths: Lengths,
): (readonly [Planned, number])[] {
  return dispatches
    .map((each) => [each, count(kernel, each.dispatch.groups, lengths)] as const)
    .filter(([, groups]) => groups);
}

/** Make the plan of a call. */
export function makePlan(
  kernel: Kernel,
  lengths: Lengths,
  ctx: Context,
  shaders: Shaders,
): CallPlan {
  const { plan } = kernel;
  checkFeatures(kernel, ctx);
  const selection = select(kernel, lengths, ctx);
  const bound = new Set(selection.dispatches.flatMap((x) => x.dispatch.bindings.map((b) => b.name)));
  const temporaries = plan.temporaries.filter((each) => bound.has(each.name));
  const named = [...plan.inputs, ...plan.outputs, ...temporaries];
  const sizes = named.map((spec) => {
    const shape = shapeOf(spec.axes, lengths);
    const what = spec.access === "temporary" ? "a temporary" : `'${spec.name}'`;
    return checkSize(kernel, what, shape, kernel.element(spec).size, ctx);
  });
  const scratch = selection.scratch.map(([, length]) =>
    checkSize(kernel, "a temporary", [count(kernel, length, lengths)], 4, ctx),
  );
  const uniformBytes = kernel.parts.uniform?.size ?? 0;
  const running = recorded(kernel, selection, lengths);
  const steps = running.map(([{ dispatch, scratch: own }, groups]): Step => {
    checkDispatch(kernel, dispatch, lengths, ctx);
    const [x, y] = fold(kernel, dispatch, groups, ctx.limits.workgroups);
    const slots = dispatch.bindings.map(({ name }) => {
      const number = own[name];
      if (number !== undefined) return named.length + number;
      return named.findIndex((each) => each.name === name);
    });
    const bytes = dispatch.uniform ? uniformBytes : 0;
    return { shader: shaders.get(dispatch, kernel.shader, bytes), slots, x, y };
  });
  const args = named.length - temporaries.length;
  const usesUniform = steps.some((each) => each.shader.usesUniform);
  const unit = ctx.device.limits.minUniformBufferOffsetAlignment;
  return {
    lengths,
    steps,
    outputs: plan.outputs.map((x) => [kernel.element(x), shapeOf(x.axes, lengths)]),
    inner: steps.length ? [...sizes.slice(args), ...scratch] : [],
    conflicts: pairs(args).filter(
      ([i, j]) => named[i]!.access !== "read" || named[j]!.access !== "read",
    ),
    mixed: mixed(running, (name) => named.findIndex((x) => x.name === name), args),
    stride: usesUniform ? roundUp(uniformBytes, unit) : 0,
  };
}

const pairs = (count: number): [number, number][] =>
  Array.from({ length: count }, (_, j) => j).flatMap((j) =>
    Array.from({ length: j }, (_, i): [number, number] => [i, j]),
  );

/** Return the pairs of arguments that some dispatch binds, only one for writing. */
function mixed(
  running: readonly (readonly [Planned, number])[],
  slotOf: (name: string) => number,
  args: number,
): Set<string> {
  const found = new Set<string>();
  for (const [{ dispatch }] of running) {
    const bound = dispatch.bindings
      .map(({ name, writes }) => [slotOf(name), writes] as const)
      .filter(([slot]) => 0 <= slot && slot < args);
    for (const [i, first] of bound)
      for (const [j, second] of bound) if (i < j && first !== second) found.add(`${i},${j}`);
  }
  return found;
}

function checkSize(
  { plan }: Kernel,
  what: string,
  shape: Shape,
  size: number,
  { limits }: Context,
): number {
  const nbytes = Math.ceil(product(shape) * size);
  if (roundUp(nbytes, 16) > limits.tensorBytes)
    throw new LimitError(
      `${plan.place}: ${what} of shape ${tuple(shape)} takes ${nbytes} bytes; the adapter ` +
        `binds at most ${limits.tensorBytes}.`,
    );
  return Math.max(nbytes, size);
}

function checkDispatch(
  { plan: { place } }: Kernel,
  { wgsl, bindings, terms, trips }: Dispatch,
  lengths: Lengths,
  { limits }: Context,
): void {
  const start = `${place}: '${wgsl}'`;
  if (bindings.length > limits.storageBuffers)
    throw new LimitError(
      `${start} binds ${bindings.length} tensors; the adapter allows ${limits.storageBuffers}.`,
    );
  const counted = evaluate(terms, lengths);
  if (counted >= MOST_TERMS)
    throw new LimitError(
      `${start} counts to ${counted}; it can count to less than ${MOST_TERMS}. Use smaller tensors.`,
    );
  const turns = evaluate(trips, lengths);
  if (turns > limits.loopTurns)
    throw new LimitError(
      `${start} runs a loop ${turns} times, and this adapter silently stops after ` +
        `${limits.loopTurns}. Use smaller tensors here, or another adapter.`,
    );
}

/** Return the workgroups in x and y; shaders skip what is beyond the total. */
export function fold(
  { plan: { place } }: Kernel,
  { wgsl }: Dispatch,
  groups: number,
  limit: number,
): [number, number] {
  if (groups <= limit) return [groups, 1];
  if (groups > limit * limit)
    throw new LimitError(
      `${place}: '${wgsl}' needs ${groups} workgroups; the adapter runs at most ` +
        `${limit} x ${limit}.`,
    );
  const y = Math.ceil(groups / limit);
  return [Math.ceil(groups / y), y];
}

function count({ plan: { place } }: Kernel, size: Size, lengths: Lengths): number {
  const found = evaluate(size, lengths);
  if (found >= 0) return found;
  throw new KerngenError(
    `${place}: its plan asks for ${found} workgroups or elements, by '${show(size)}'. ` +
      `Run 'kerngen build' again.`,
  );
}

