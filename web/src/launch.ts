/** A call: check, plan, pack, bind, and only then record. */
import { checkOut, checkTensors, derive, resolve, type Lengths } from "./check.js";
import type { Context } from "./context.js";
import { cached } from "./element.js";
import { AliasError, ContextError, refuse, UniformRangeError } from "./errors.js";
import { checkNames, guardsOf, scalarsOf, type Kernel } from "./kernel.js";
import type { Block } from "./memory.js";
import type { Given, TensorPlan } from "./plan.js";
import { makePlan, recorded, select, type CallPlan, type Step } from "./planner.js";
import type { Chunk } from "./recorder.js";
import type { Shaders } from "./shaders.js";
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

/** Bind groups beyond so many are made again when they are needed. */
const MOST_GROUPS = 4096;

/** Call a kernel with tensors, and options behind them. */
export function launch(kernel: Kernel, given: unknown[]): unknown {
  const { length } = kernel.inputs;
  // One too many is refused as such: it is no object of options.
  const tensors = (given[length] instanceof Tensor ? given : given.slice(0, length)) as Any[];
  const options = (given[length] ?? {}) as Given;
  const ctx: Context | undefined =
    options["ctx"] ?? tensors.find((each) => each instanceof Tensor)?.ctx;
  if (!ctx) return refuse(ContextError, "noContext", kernel);
  return ctx.launcher.launch(kernel, tensors, options);
}

/** Launches the kernels of a context. */
export class Launcher {
  /** How many bind groups were made. */
  groupsMade = 0;
  private readonly plans = new WeakMap<Kernel, Map<string, CallPlan>>();
  private readonly groups = new Map<string, GPUBindGroup>();

  constructor(
    private readonly ctx: Context,
    private readonly shaders: Shaders,
  ) {}

  /** Record a call and return its result. */
  launch(kernel: Kernel, tensors: readonly Any[], options: Given): unknown {
    const { ctx } = this;
    const { memory, recorder } = ctx;
    ctx.check();
    const out = outOf(kernel, options);
    checkTensors(kernel, ctx, kernel.inputs, tensors, "argument");
    checkTensors(kernel, ctx, kernel.outputs, out, "out");
    const scalars = scalarsOf(kernel, options);
    const plan = this.planOf(kernel, tensors, scalars, out);
    const detours = detoursOf(kernel, plan, [...tensors, ...out]);
    const chunk = kernel.uniform && recorder.room(plan.stride);
    const at = chunk?.used ?? 0;
    if (chunk) pack(kernel, plan.lengths, scalars, chunk.view, at);
    // Whatever throws has thrown before this line: what follows only records.
    if (chunk) chunk.used += plan.stride;
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
      if (specOf(kernel, slot).access !== "write") ctx.copy(block, offset, other, 0, nbytes);
    }
    places.push(...plan.inner.map(place));
    for (const step of plan.steps) {
      const { shader, x, y } = step;
      recorder.add({ shader, group: this.groupOf(step, places, chunk), offset: at, x, y });
    }
    if (!plan.steps.length)
      for (const { block, offset, nbytes } of outputs)
        recorder.add((encoder) => encoder.clearBuffer(block.buffer, offset, nbytes));
    for (const slot of detours) {
      const { block, offset, nbytes } = args[slot]!;
      if (specOf(kernel, slot).access !== "read")
        ctx.copy(places[slot]![0], 0, block, offset, nbytes);
    }
    // What is recorded next runs after this, so that it may have the same memory.
    inner.forEach((block) => memory.release(block));
    recorder.relieve();
    return resultOf(kernel, outputs);
  }

  /** Return the shaders that would run. */
  choices(kernel: Kernel, dims: Readonly<Record<string, number>>): string[] {
    const lengths = { ...dims };
    derive(kernel, lengths);
    return recorded(kernel, select(kernel, lengths, this.ctx)).map(([each]) => each.wgsl);
  }

  private planOf(
    kernel: Kernel,
    tensors: readonly Any[],
    scalars: readonly unknown[],
    out: readonly (Any | undefined)[],
  ): CallPlan {
    const guards = guardsOf(kernel, scalars);
    const own = cached(this.plans, kernel, () => new Map<string, CallPlan>());
    let key = "";
    for (const each of tensors) key += each.key;
    for (const each of out) key += each?.key ?? "-";
    for (const name in guards) key += `,${JSON.stringify(guards[name], spelled)}`;
    let plan = own.get(key);
    if (!plan || plan.steps.some((each) => each.shader.error)) {
      const shapes = tensors.map((each) => each.shape);
      const lengths = resolve(kernel, shapes, guards);
      checkOut(kernel, lengths, out);
      plan = makePlan(kernel, lengths, this.ctx, this.shaders);
      if (own.size > 1000) own.clear();
      own.set(key, plan);
    }
    return plan;
  }

  private groupOf(
    { shader: { uid, layout, uniformBytes }, slots }: Step,
    places: readonly Place[],
    chunk: Chunk | undefined,
  ): GPUBindGroup {
    const arena = uniformBytes ? chunk : undefined;
    let key = `${uid},${arena?.uid}`;
    for (const slot of slots) {
      const [block, offset, bytes] = places[slot]!;
      key += `|${block.uid},${offset},${bytes}`;
    }
    const { ctx, groups } = this;
    return cached(groups, key, () => {
      if (groups.size >= MOST_GROUPS) groups.clear();
      const entries: GPUBindGroupEntry[] = slots.map((slot, i) => {
        const [{ buffer, capacity }, offset, bytes] = places[slot]!;
        const size = Math.min(bytes, capacity - offset);
        return { binding: i + 1, resource: { buffer, offset, size } };
      });
      if (arena)
        entries.push({ binding: 0, resource: { buffer: arena.buffer, size: uniformBytes } });
      this.groupsMade++;
      return ctx.device.createBindGroup({ layout, entries });
    });
  }
}

/** Numbers of which JSON knows none; 0 and -0 are equal, but 1 / x tells them apart. */
const spelled = (_: string, x: unknown): unknown =>
  typeof x === "number" ? (Object.is(x, -0) ? "-0" : `${x}`) : x;

const specOf = ({ inputs, outputs }: Kernel, slot: number): TensorPlan =>
  inputs[slot] ?? outputs[slot - inputs.length]!;

/** Refuse overlaps; return the arguments that a copy stands in for. */
function detoursOf(
  kernel: Kernel,
  plan: CallPlan,
  given: readonly (Any | undefined)[],
): Set<number> {
  const found = new Set<number>();
  given.forEach((first, i) => {
    if (!first) return;
    if (!first.direct && first.nbytes) found.add(i);
    given.slice(0, i).forEach((second, j) => {
      if (second?.block.buffer !== first.block.buffer) return;
      const [one, other] = [specOf(kernel, j), specOf(kernel, i)];
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
}

/** Return what an output is called in a result of several. */
export const fieldOf = ({ field, name }: TensorPlan): string => field ?? name;

/** Return the tensors to put results in, in the order of the outputs. */
function outOf(kernel: Kernel, { out }: Given): (Any | undefined)[] {
  if (kernel.outputs.length < 2) return kernel.outputs.map(() => out);
  const fields = kernel.outputs.map(fieldOf);
  checkNames(kernel, "output", out, fields);
  return fields.map((each) => out?.[each]);
}

const resultOf = ({ outputs }: Kernel, tensors: readonly Any[]): unknown =>
  outputs.length < 2
    ? tensors[0]
    : Object.fromEntries(outputs.map((each, i) => [fieldOf(each), tensors[i]]));

/** Compute the host values of a call, check them, and write its uniform struct. */
export function pack(
  kernel: Kernel,
  lengths: Lengths,
  scalars: readonly unknown[],
  view: DataView,
  at = 0,
): void {
  const { uniform, hosts } = kernel;
  if (!uniform) return;
  const given: Given = { ...lengths };
  kernel.scalars.forEach(([name], i) => (given[name] = scalars[i]));
  const dims = [...kernel.dims, ...kernel.lengths.map(([name]) => name)];
  const values = [...dims.map((each) => lengths[each]), ...scalars, ...(hosts?.(given) ?? [])];
  uniform.fields.forEach((row, i) => {
    const value = values[i];
    try {
      fit(row, typeof value === "bigint" ? Number(value) : value, ["", ""], view, at);
    } catch {
      refuse(UniformRangeError, "host", kernel, uniform.name, row, value, scalars);
    }
  });
}
