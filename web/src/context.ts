/** Contexts: a device, with the memory, shaders and recordings on it. */
import { bytesOf, impliedBy, product, type Leaf } from "./element.js";
import {
  ArgumentError,
  ContextError,
  DeviceLost,
  DtypeError,
  NoAdapter,
  refuse,
} from "./errors.js";
import { makeLaunch, type KernelFunction, type Launch } from "./launch.js";
import { derive } from "./check.js";
import type { Kernel } from "./kernel.js";
import { checkedBytes, makePlan, type Planned } from "./planner.js";
import { blockOf, makeMemory, USAGE, type Memory } from "./memory.js";
import { makeRecorder, type Recorder } from "./recorder.js";
import { fetchShader, makeShaders } from "./shaders.js";
import { bare } from "./sizes.js";
import { typeOf, type ElementType, type StructType } from "./struct.js";
import {
  checkShape,
  encode,
  Tensor,
  type ElementOf,
  type Shape,
  type Values,
} from "./tensor.js";

/** How a context is opened. */
export interface Options {
  /** One's own device; else one is requested. */
  readonly device?: GPUDevice;
  readonly powerPreference?: GPUPowerPreference;
  /** What reads shaders, in place of `fetch`: for programs outside of pages. */
  readonly read?: (url: URL) => Promise<string>;
  /** After how many turns of loops the adapter ends an invocation, if it does so. */
  readonly loopTurns?: number;
}

/** What plans ask of a device, and what checks know of it. */
export interface Limits {
  readonly "adapter.workgroup_bytes": number;
  readonly "adapter.invocations": number;
  readonly "adapter.subgroups": number;
  readonly "adapter.f16": number;
  readonly "adapter.tensor_bytes": number;
  /** @internal */
  readonly storageBuffers: number;
  readonly workgroups: number;
  readonly loopTurns: number | undefined;
}

const RAISED = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupsPerDimension",
] as const;
const FEATURES = ["shader-f16", "subgroups"] as const;

/** Open a context on one's own device, or on one that is requested. */
export const open = async (options: Options = {}): Promise<Context> => {
  return new Context(options.device ?? (await request(options)), options);
};

const request = async ({ powerPreference }: Options): Promise<GPUDevice> => {
  const gpu = (globalThis.navigator as Navigator | undefined)?.gpu as GPU | undefined;
  const adapter = await gpu?.requestAdapter({ powerPreference } as GPURequestAdapterOptions);
  if (!adapter) return refuse(NoAdapter, "adapter", gpu);
  return adapter.requestDevice({
    requiredFeatures: FEATURES.filter((each) => adapter.features.has(each)),
    requiredLimits: Object.fromEntries(RAISED.map((each) => [each, adapter.limits[each]])),
  });
};

/** Where tensors and calls of kernels belong. */
export class Context {
  readonly limits: Limits;
  /** @internal */
  readonly alignment: number;
  /** @internal */
  readonly memory: Memory;
  /** @internal */
  readonly recorder: Recorder;
  /** @internal */
  readonly launch: Launch;
  /** The tensors that the innermost scope has made. @internal */
  made: Tensor<any>[] | undefined;

  constructor(
    readonly device: GPUDevice,
    options: Options = {},
  ) {
    const { limits, features } = device;
    this.alignment = limits.minStorageBufferOffsetAlignment;
    this.limits = {
      "adapter.workgroup_bytes": limits.maxComputeWorkgroupStorageSize,
      "adapter.invocations": Math.min(
        limits.maxComputeInvocationsPerWorkgroup,
        limits.maxComputeWorkgroupSizeX,
      ),
      "adapter.subgroups": +features.has("subgroups"),
      "adapter.f16": +features.has("shader-f16"),
      "adapter.tensor_bytes": Math.min(
        limits.maxStorageBufferBindingSize,
        limits.maxBufferSize,
      ),
      storageBuffers: limits.maxStorageBuffersPerShaderStage,
      workgroups: limits.maxComputeWorkgroupsPerDimension,
      loopTurns: options.loopTurns,
    };
    this.memory = makeMemory(device, limits.maxBufferSize);
    this.recorder = makeRecorder(device, this.memory);
    this.launch = makeLaunch(this, makeShaders(device, options.read ?? fetchShader));
    void device.lost.then(({ message, reason }) => {
      this.recorder.ended ??= new DeviceLost("reason", message || reason);
    });
  }

  /** Upload numbers or structs; typed arrays imply their element type. */
  tensor<const S extends Shape>(values: Float32Array, shape: S): Tensor<"f32", S["length"]>;
  tensor<const S extends Shape>(values: Int32Array, shape: S): Tensor<"i32", S["length"]>;
  tensor<const S extends Shape>(values: Uint32Array, shape: S): Tensor<"u32", S["length"]>;
  tensor<const S extends Shape, E extends Leaf>(
    values: ArrayLike<number>,
    shape: S,
    element: E,
  ): Tensor<E, S["length"]>;
  tensor<const S extends Shape, E extends object>(
    values: readonly E[],
    shape: S,
    element: StructType<E>,
  ): Tensor<E, S["length"]>;
  tensor(values: Values, shape: Shape, element?: string | StructType<any>): Tensor<any, any> {
    const type = this.element(element ?? impliedBy(values), values);
    checkShape(shape);
    const bytes = encode(values, type, product(shape));
    const tensor = this.make(type, shape);
    this.recorder.upload(tensor.block, 0, bytes);
    return tensor;
  }

  /** Make a tensor of zeros. */
  zeros<const S extends Shape, E>(shape: S, element: ElementOf<E>): Tensor<E, S["length"]> {
    const tensor = this.empty<S, E>(shape, element);
    this.recorder.wipe(tensor.block, tensor.offset, tensor.bound);
    return tensor;
  }

  /** Make a tensor whose elements are not set. */
  empty<const S extends Shape, E>(shape: S, element: ElementOf<E>): Tensor<E, S["length"]> {
    checkShape(shape);
    return this.make(this.element(element as string | StructType<any>), shape);
  }

  /** Make a tensor of one's own buffer, which has the usages STORAGE, COPY_SRC and COPY_DST. */
  wrap<const S extends Shape, E>(
    buffer: GPUBuffer,
    shape: S,
    element: ElementOf<E>,
    offset = 0,
  ): Tensor<E, S["length"]> {
    this.recorder.check();
    checkShape(shape);
    const type = this.element(element as string | StructType<any>);
    const nbytes = bytesOf(type, product(shape));
    const fits = offset % 4 === 0 && offset >= 0 && offset + nbytes <= buffer.size;
    if (!fits || (buffer.usage & USAGE) !== USAGE)
      refuse(ArgumentError, "buffer", fits, nbytes, offset, buffer.size);
    const block = blockOf(buffer, nbytes, buffer.size, true);
    return new Tensor<E, S["length"]>(this, type, shape, block, offset);
  }

  /** Run a function, and free the tensors that it made but those it returns. */
  scope<T>(run: () => T): T {
    const outer = this.made;
    const made: Tensor<any>[] = (this.made = []);
    let result: T | undefined;
    try {
      return (result = run());
    } finally {
      this.made = outer;
      const kept: unknown[] = [result, ...Object.values(Object(result))];
      for (const tensor of made)
        if (kept.includes(tensor)) outer?.push(tensor);
        else tensor.free();
    }
  }

  /** Submit what is recorded; resolve when the device has taken it, reject if it did not. */
  submit(): Promise<void> {
    return this.recorder.flush();
  }

  /** Return which shaders a kernel would run for some dims, and scalars that it asks for. */
  choices(kernel: KernelFunction, dims: Readonly<Record<string, number>>): string[] {
    const { kernel: own } = kernel as unknown as { kernel: Kernel };
    const lengths = bare(dims);
    derive(own, lengths);
    const { steps } = makePlan(own, lengths, this, (planned) => planned as never);
    return steps.map(({ shader }) => (shader as unknown as Planned).wgsl);
  }

  /** End the context; a device of one's own stays. */
  close(): void {
    this.recorder.ended ??= new ContextError("close");
  }

  // What follows is the runtime's.

  /** @internal */
  make(element: ElementType, shape: Shape): Tensor<any, any> {
    this.recorder.check();
    const nbytes = checkedBytes(this.limits, shape, element.size);
    const block = this.memory.acquire(Math.max(nbytes, element.size));
    block.used = nbytes;
    return new Tensor(this, element, shape, block);
  }

  private element(element: string | StructType<any> | undefined, values?: Values): ElementType {
    const type: ElementType | undefined = typeOf(element as ElementType);
    return type?.strides ? type : refuse(DtypeError, "element", element, values);
  }
}
