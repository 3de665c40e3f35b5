/** A call: check, plan, pack, bind, and only then record. */
import { checkTensors, resolve, type Lengths } from "./check.js";
import type { Context } from "./context.js";
import { cached } from "./element.js";
import { AliasError, ContextError, refuse, UniformRangeError } from "./errors.js";
import { byName, checkNames, guardsOf, scalarsOf, type Kernel } from "./kernel.js";
import type { Block } from "./memory.js";
import type { Given, TensorPlan } from "./plan.js";
import { makePlan, type CallPlan, type Step } from "./planner.js";
import type { Chunk } from "./recorder.js";
import type { Shaders } from "./shaders.js";
import { bare } from "./sizes.js";
import { fit } from "./struct.js";
import { boundBytes, Tensor } from "./tensor.js";

/** A generated function, with the kernel that it calls. */
export interface KernelFunction {
  (...given: any[]): unknown;
}

/** What the options of every call may have. */
export interface Call<Out = never> {
  /** Where to put the result, or results by their names, in place of new tensors. */
  readonly out?: Out | undefined;
  /** The context; tensors imply it. */
  readonly ctx?: Context | undefined;
}

type Any = Tensor<any>;
/** Where a slot's memory is. */
type Place = readonly [block: Block, offset: number, bytes: number];

/** Call a kernel with tensors, and options behind them. */
export const launch = (kernel: Kernel, given: unknown[]): unknown => {
  const tensors = given as Any[];
  const [last = {}, ...more] = tensors.splice(kernel.inputs.length);
  // What is no object of options, and what is one too many, is refused as such.
  if (more.length || Object(last) !== last || last instanceof Tensor) tensors.push(last as Any, ...more);
  const options = bare(last);
  const ctx: Context | undefined =
    options["ctx"] ?? tensors.find((each) => each instanceof Tensor)?.ctx;
  if (!ctx?.launch) return refuse(ContextError, "ctx", kernel, ctx);
  return ctx.launch(kernel, tensors, options);
};

/** Records a call of a kernel, and returns its result. */
export type Launch = (kernel: Kernel, tensors: readonly Any[], options: Given) => unknown;

/** Make what records calls in a context. */
export const makeLaunch = (ctx: Context, shaders: Shaders): Launch => {
  const { memory, recorder } = ctx;
  const plans = new WeakMap<Kernel, Map<string, CallPlan>>();
  const groups = new Map<string, GPUBindGroup>();

  const planOf = (
    kernel: Kernel,
    given: readonly (Any | undefined)[],
    scalars: readonly unknown[],
  ): CallPlan => {
    const guards = guardsOf(kernel, scalars);
    const own = cached(plans, kernel, () => new Map<string, CallPlan>());
    // Most kernels have no guards, and JSON takes longer than all the rest.
    const scalarsKey = kernel.guards[0] && JSON.stringify(guards, spelled);
    const key = `${given.map((each) => each?.key)}${scalarsKey}`;
    if (own.get(key)?.steps.some((each) => each.shader.error)) own.delete(key);
    return cached(own, key, () => {
      const shapes = given.map((each) => each?.shape);
      return makePlan(kernel, resolve(kernel, shapes, guards), ctx, shaders);
    });
  };

  const groupOf = (
    { shader: { uid, layout, uniformBytes }, slots }: Step,
    places: readonly Place[],
    chunk: Chunk,
  ): GPUBindGroup => {
    const own = slots.map((slot) => places[slot]!);
    let key = `${uid},${uniformBytes && chunk.uid}`;
    for (const [block, offset, bytes] of own) key += `|${block.uid},${offset},${bytes}`;
    return cached(groups, key, () => {
      const entries: GPUBindGroupEntry[] = own.map(([{ buffer, capacity }, offset, bytes], i) => {
        const size = Math.min(bytes, capacity - offset);
        return { binding: i + 1, resource: { buffer, offset, size } };
      });
      if (uniformBytes)
        entries.push({ binding: 0, resource: { buffer: chunk.buffer, size: uniformBytes } });
      return ctx.device.createBindGroup({ layout, entries });
    });
  };

  return (kernel, tensors, options) => {
    recorder.check();
    const out = outOf(kernel, options);
    const given = [...tensors, ...out];
    checkTensors(kernel, ctx, given);
    const scalars = scalarsOf(kernel, options);
    const plan = planOf(kernel, given, scalars);
    const detours = detoursOf(kernel, plan, given);
    const chunk = recorder.room(plan.stride);
    const at = chunk.used;
    pack(kernel, plan.lengths, scalars, chunk.view, at);
    // Whatever throws has thrown before this line: what follows only records.
    chunk.used += plan.stride;
    const outputs = plan.outputs.map(([type, shape], i) => out[i] ?? ctx.make(type, shape));
    const args = [...tensors, ...outputs];
    const inner: Block[] = [];
    const place = (nbytes: number): Place => {
      const block = memory.acquire(nbytes);
      inner.push(block);
      return [block, 0, boundBytes(nbytes)];
    };
    const places = args.map((each): Place => [each.block, each.offset, each.bound]);
    for (const slot of detours) {
      const { block, offset, nbytes } = args[slot]!;
      const [other] = (places[slot] = place(nbytes));
      if (kernel.args[slot]!.access !== "write")
        recorder.copy(block, offset, other, 0, nbytes);
    }
    places.push(...plan.inner.map(place));
    // A gradient of empty tensors is 0.
    if (!plan.steps.length)
      for (const place of places.slice(tensors.length, args.length)) recorder.wipe(...place);
    for (const step of plan.steps)
      recorder.add({ step, group: groupOf(step, places, chunk), offset: at });
    for (const slot of detours) {
      const { block, offset, nbytes } = args[slot]!;
      if (kernel.args[slot]!.access !== "read")
        recorder.copy(places[slot]![0], 0, block, offset, nbytes);
    }
    // What is recorded next runs after this, so that it may have the same memory.
    inner.forEach(memory.release);
    return resultOf(kernel, outputs);
  };
};

/** Numbers of which JSON knows none; 0 and -0 are equal, but 1 / x tells them apart. */
const spelled = (_: string, x: unknown): unknown =>
  typeof x === "number" ? (Object.is(x, -0) ? "-0" : `${x}`) : x;

/** Refuse overlaps; return the arguments that a copy stands in for. */
const detoursOf = (
  kernel: Kernel,
  plan: CallPlan,
  given: readonly (Any | undefined)[],
): Set<number> => {
  const found = new Set<number>();
  given.forEach((first, i) => {
    if (!first) return;
    if (!first.direct && first.nbytes) found.add(i);
    given.slice(0, i).forEach((second, j) => {
      if (second?.block.buffer !== first.block.buffer) return;
      const [one, other] = [kernel.args[j]!, kernel.args[i]!];
      const isRead = one.access === "read";
      if (isRead && other.access === "read") return;
      const start = Math.max(first.offset, second.offset);
      if (start < Math.min(first.offset + first.nbytes, second.offset + second.nbytes))
        refuse(AliasError, "overlap", kernel, one, other);
      // No dispatch may bind one buffer for reading and for writing.
      const isMixed = plan.steps.some(({ slots, access }) => {
        const [here, there] = [access[slots.indexOf(i)], access[slots.indexOf(j)]];
        return here && there && here !== there;
      });
      if (isMixed && !found.has(i) && !found.has(j)) found.add(isRead ? j : i);
    });
  });
  return found;
};

/** Return what an output is called in a result of several. */
export const fieldOf = ({ field, name }: TensorPlan): string => field ?? name;

/** Return the tensors to put results in, in the order of the outputs. */
const outOf = (kernel: Kernel, { out }: Given): (Any | undefined)[] => {
  const fields = kernel.outputs.map(fieldOf);
  if (fields.length < 2) return fields.map(() => out);
  const own = bare(out);
  checkNames(kernel, "output", own, fields);
  return fields.map((each) => own[each]);
};

const resultOf = ({ outputs }: Kernel, tensors: readonly Any[]): unknown =>
  outputs.length < 2
    ? tensors[0]
    : Object.fromEntries(outputs.map((each, i) => [fieldOf(each), tensors[i]]));

/** Compute the host values of a call, check them, and write its uniform struct. */
export const pack = (
  kernel: Kernel,
  lengths: Lengths,
  scalars: readonly unknown[],
  view: DataView,
  at = 0,
): void => {
  const { uniform, hosts } = kernel;
  if (!uniform) return;
  const dims = [...kernel.dims, ...kernel.lengths.map(([name]) => name)];
  const values = [...dims.map((each) => lengths[each]), ...scalars, ...(hosts?.({ ...lengths, ...byName(kernel, scalars) }) ?? [])];
  uniform.fields.forEach((row, i) => {
    const value = values[i];
    try {
      fit(row, typeof value === "bigint" ? Number(value) : value, ["", ""], view, at);
    } catch {
      refuse(UniformRangeError, "hosts", kernel, row, value, scalars);
    }
  });
};
