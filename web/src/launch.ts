/** A call: check, plan, pack, bind, and only then record. */
import { checkOut, checkTensors, resolve, type Lengths } from "./check.js";
import type { Context } from "./context.js";
import { AliasError, ContextError, refuse, UniformRangeError } from "./errors.js";
import { guardsOf, scalarsOf, type Kernel } from "./kernel.js";
import type { Block } from "./memory.js";
import type { Given, TensorPlan } from "./plan.js";
import { makePlan, recorded, select, type CallPlan, type Step } from "./planner.js";
import type { Chunk } from "./recorder.js";
import type { Shaders } from "./shaders.js";
import { fit, typeOf, write } from "./struct.js";
import { derive } from "./check.js";
import { Tensor } from "./tensor.js";

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
  const tensors = given.slice(0, length) as Any[];
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
    ctx.check();
    const out = outOf(kernel, options);
    checkTensors(kernel, ctx, kernel.inputs, tensors, "argument");
    checkTensors(kernel, ctx, kernel.outputs, out, "out");
    const scalars = scalarsOf(kernel, options);
    const plan = this.plan(kernel, tensors, scalars, out);
    const given = [...tensors, ...out];
    const detours = this.detours(kernel, plan, given);
    // Whatever throws has thrown before this line: what follows only records.
    const [chunk, at] = this.pack(kernel, plan, scalars);
    const outputs = plan.outputs.map(([type, shape], i) => out[i] ?? ctx.make(type, shape));
    const args = [...tensors, ...outputs];
    const inner = plan.inner.map((nbytes) => ctx.memory.acquire(nbytes));
    const places = args.map((each): Place => [each.block, each.offset, each.bound]);
    const stands = [...detours].map((slot) => [slot, args[slot]!] as const);
    for (const [slot, tensor] of stands) this.standIn(kernel, slot, tensor, places, inner);
    for (const [i, nbytes] of plan.inner.entries())
      places.push([inner[i]!, 0, Math.ceil(Math.max(nbytes, 16) / 16) * 16]);
    for (const step of plan.steps) {
      const group = this.group(step, places, chunk);
      ctx.recorder.add({ shader: step.shader, group, offset: at, x: step.x, y: step.y });
    }
    for (const [slot, tensor] of stands)
      if (access(kernel, slot) !== "read")
        ctx.copy(places[slot]![0], 0, tensor.block, tensor.offset, tensor.nbytes);
    // What is recorded next runs after this, so that it may have the same memory.
    inner.forEach((block) => ctx.memory.release(block));
    ctx.recorder.relieve();
    return result(kernel, outputs);
  }

  /** Return the shaders that would run. */
  choices(kernel: Kernel, dims: Readonly<Record<string, number>>): string[] {
    const lengths = { ...dims };
    derive(kernel, lengths);
    const selection = select(kernel, lengths, this.ctx);
    return recorded(kernel, selection).map(([each]) => each.wgsl);
  }

  private plan(
    kernel: Kernel,
    tensors: readonly Any[],
    scalars: readonly unknown[],
    out: readonly (Any | undefined)[],
  ): CallPlan {
    const guards = guardsOf(kernel, scalars);
    let key = "";
    for (const each of tensors) key += each.key;
    for (const each of out) key += each ? each.key : "-";
    for (const name in guards) key += `,${JSON.stringify(guards[name], spelled)}`;
    let plans = this.plans.get(kernel);
    if (!plans) this.plans.set(kernel, (plans = new Map<string, CallPlan>()));
    let plan = plans.get(key);
    if (!plan || plan.steps.some((each) => each.shader.error)) {
      const lengths = resolve(
        kernel,
        tensors.map((each) => each.shape),
        guards,
      );
      checkOut(kernel, lengths, out);
      plan = makePlan(kernel, lengths, this.ctx, this.shaders);
      if (plans.size > 1000) plans.clear();
      plans.set(key, plan);
    }
    return plan;
  }

  /** Refuse overlaps; return the arguments that a copy stands in for. */
  private detours(
    kernel: Kernel,
    plan: CallPlan,
    given: readonly (Any | undefined)[],
  ): Set<number> {
    const found = new Set<number>();
    given.forEach((each, slot) => each && !each.direct && each.nbytes && found.add(slot));
    given.forEach((first, i) =>
      given.slice(0, i).forEach((second, j) => {
        if (!first || !second || first.block.buffer !== second.block.buffer) return;
        const isRead = access(kernel, j) === "read";
        if (isRead && access(kernel, i) === "read") return;
        const start = Math.max(first.offset, second.offset);
        if (start < Math.min(first.offset + first.nbytes, second.offset + second.nbytes))
          refuse(AliasError, "overlap", kernel, spec(kernel, j), spec(kernel, i));
        // No dispatch may bind one buffer for reading and for writing.
        const isMixed = plan.steps.some(({ slots, access: how }) => {
          const [one, other] = [how[slots.indexOf(i)], how[slots.indexOf(j)]];
          return one && other && one !== other;
        });
        if (isMixed && !found.has(i) && !found.has(j)) found.add(isRead ? j : i);
      }),
    );
    return found;
  }

  /** Let a copy stand in for an argument during one call. */
  private standIn(
    kernel: Kernel,
    slot: number,
    tensor: Any,
    places: Place[],
    inner: Block[],
  ): void {
    const block = this.ctx.memory.acquire(Math.max(tensor.nbytes, tensor.element.size));
    block.used = tensor.nbytes;
    inner.push(block);
    places[slot] = [block, 0, Math.ceil(Math.max(tensor.nbytes, 16) / 16) * 16];
    if (access(kernel, slot) !== "write")
      this.ctx.copy(tensor.block, tensor.offset, block, 0, tensor.nbytes);
  }

  /** Pack the uniform struct; return where it is. */
  private pack(
    kernel: Kernel,
    plan: CallPlan,
    scalars: readonly unknown[],
  ): readonly [Chunk | undefined, number] {
    const chunk = plan.stride ? this.ctx.recorder.room(plan.stride) : undefined;
    if (!chunk) {
      pack(kernel, plan.lengths, scalars);
      return [undefined, 0];
    }
    const at = chunk.used;
    pack(kernel, plan.lengths, scalars, chunk.view, at);
    chunk.used += plan.stride;
    return [chunk, at];
  }

  private group(
    { shader, slots }: Step,
    places: readonly Place[],
    chunk: Chunk | undefined,
  ): GPUBindGroup {
    let key = `${shader.uid},${shader.usesUniform ? chunk!.uid : 0}`;
    for (const slot of slots) {
      const [block, offset, bytes] = places[slot]!;
      key += `|${block.uid},${offset},${bytes}`;
    }
    const known = this.groups.get(key);
    if (known) return known;
    const entries: GPUBindGroupEntry[] = slots.map((slot, i) => {
      const [{ buffer, capacity }, offset, bytes] = places[slot]!;
      const size = Math.min(bytes, capacity - offset);
      return { binding: i + 1, resource: { buffer, offset, size } };
    });
    if (shader.usesUniform) {
      const size = shader.uniformBytes;
      entries.unshift({ binding: 0, resource: { buffer: chunk!.buffer, size } });
    }
    const group = this.ctx.device.createBindGroup({ layout: shader.layout, entries });
    this.groupsMade++;
    if (this.groups.size >= MOST_GROUPS) this.groups.clear();
    this.groups.set(key, group);
    return group;
  }
}

/** Numbers of which JSON knows none; 0 and -0 are equal, but 1 / x tells them apart. */
const spelled = (_: string, x: unknown): unknown =>
  typeof x === "number" ? (Object.is(x, -0) ? "-0" : `${x}`) : x;

const spec = ({ inputs, outputs }: Kernel, slot: number): TensorPlan =>
  inputs[slot] ?? outputs[slot - inputs.length]!;
const access = (kernel: Kernel, slot: number): string => spec(kernel, slot).access;

/** Return what an output is called in a result of several. */
export const fieldOf = ({ field, name }: TensorPlan): string => field ?? name;

/** Return the tensors to put results in, in the order of the outputs. */
function outOf({ outputs }: Kernel, { out }: Given): (Any | undefined)[] {
  if (out === undefined || outputs.length < 2) return outputs.map(() => out);
  return outputs.map((each) => out[fieldOf(each)]);
}

function result({ outputs }: Kernel, tensors: readonly Any[]): unknown {
  if (outputs.length < 2) return tensors[0];
  return Object.fromEntries(outputs.map((each, i) => [fieldOf(each), tensors[i]]));
}

/** Compute the host values of a call, check them, and write its uniform struct. */
export function pack(
  kernel: Kernel,
  lengths: Lengths,
  scalars: readonly unknown[],
  view?: DataView,
  at = 0,
): void {
  const { uniform, hosts } = kernel;
  if (!uniform) return;
  const given: Given = { ...lengths };
  kernel.scalars.forEach(([own], i) => (given[own] = scalars[i]));
  const dims = [...kernel.dims, ...kernel.lengths.map(([name]) => name)];
  const values = dims.map((each) => lengths[each] as unknown).concat(scalars, hosts?.(given) ?? []);
  const first = values.length - (uniform.fields.length - dims.length - scalars.length);
  uniform.fields.forEach((row, i) => {
    const value = typeof values[i] === "bigint" ? Number(values[i]) : values[i];
    if (i >= first)
      try {
        fit(typeOf(row[1]), value, ["", ""]);
      } catch {
        refuse(UniformRangeError, "host", kernel, uniform.name, row, values[i], scalars);
      }
    if (view) write(view, at, row, value);
  });
}
