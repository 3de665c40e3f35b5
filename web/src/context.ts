/** Contexts: a device, with the memory, shaders and recordings on it. */
import { bytesOf, impliedBy, leafType, product, type Leaf } from "./element.js";
import {
  ArgumentError,
  ContextError,
  DeviceLost,
  DtypeError,
  KerngenError,
  LimitError,
  NoAdapter,
  refuse,
} from "./errors.js";
import { Launcher, type KernelFunction } from "./launch.js";
import type { Kernel } from "./kernel.js";
import { Memory, USAGE, type Block } from "./memory.js";
import { Recorder } from "./recorder.js";
import { fetchShader, makeShaders } from "./shaders.js";
import type { ElementType, StructType } from "./struct.js";
import {
  checkShape,
  encode,
  roundUp,
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
  readonly workgroupBytes: number;
  readonly invocations: number;
  readonly subgroups: boolean;
  readonly f16: boolean;
  readonly storageBuffers: number;
  readonly tensorBytes: number;
  readonly workgroups: number;
  readonly loopTurns: number;
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
const READ = 0x1 | 0x8; // MAP_READ and COPY_DST
const WRITE = 0x4; // COPY_SRC

/** Open a context on one's own device, or on one that is requested. */
export async function open(options: Options = {}): Promise<Context> {
  return new Context(options.device ?? (await request(options)), options);
}

async function request({ powerPreference }: Options): Promise<GPUDevice> {
  const gpu = (globalThis.navigator as Navigator | undefined)?.gpu as GPU | undefined;
  if (!gpu) return refuse(NoAdapter, "noWebGPU");
  const adapter = await gpu.requestAdapter(powerPreference ? { powerPreference } : {});
  if (!adapter) return refuse(NoAdapter, "noAdapter");
  return adapter.requestDevice({
    requiredFeatures: FEATURES.filter((each) => adapter.features.has(each)),
    requiredLimits: Object.fromEntries(RAISED.map((each) => [each, adapter.limits[each]])),
  });
}

/** Where tensors and calls of kernels belong. */
export class Context {
  readonly limits: Limits;
  readonly alignment: number;
  readonly memory: Memory;
  readonly recorder: Recorder;
  readonly launcher: Launcher;
  private ended: KerngenError | undefined;
  private scopes: Tensor<any>[][] = [];

  constructor(
    readonly device: GPUDevice,
    options: Options = {},
  ) {
    const { limits, features } = device;
    this.alignment = limits.minStorageBufferOffsetAlignment;
    this.limits = {
      workgroupBytes: limits.maxComputeWorkgroupStorageSize,
      invocations: Math.min(
        limits.maxComputeInvocationsPerWorkgroup,
        limits.maxComputeWorkgroupSizeX,
      ),
      subgroups: features.has("subgroups"),
      f16: features.has("shader-f16"),
      storageBuffers: limits.maxStorageBuffersPerShaderStage,
      tensorBytes: Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize),
      workgroups: limits.maxComputeWorkgroupsPerDimension,
      loopTurns: options.loopTurns ?? Infinity,
    };
    this.memory = new Memory(device, limits.maxBufferSize, (error) => {
      this.recorder.fault ??= error;
    });
    this.recorder = new Recorder(device, this.memory);
    this.launcher = new Launcher(this, makeShaders(device, options.read ?? fetchShader));
    void device.lost.then(({ message, reason }) => {
      this.ended ??= new DeviceLost("lost", message || reason);
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
    const type = this.element(element ?? impliedBy(values));
    checkShape(shape);
    const bytes = encode(values, type, product(shape));
    const tensor = this.make(type, shape);
    this.upload(tensor.block, 0, bytes);
    return tensor;
  }

  /** Make a tensor of zeros. */
  zeros<const S extends Shape, E>(shape: S, element: ElementOf<E>): Tensor<E, S["length"]> {
    const tensor = this.empty<S, E>(shape, element);
    const { block, nbytes } = tensor;
    this.recorder.add((encoder) => encoder.clearBuffer(block.buffer, 0, roundUp(nbytes, 4)));
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
    this.check();
    checkShape(shape);
    const type = this.element(element as string | StructType<any>);
    const nbytes = bytesOf(type, product(shape));
    if ((buffer.usage & USAGE) !== USAGE) refuse(ArgumentError, "usages");
    if (offset % 4 || offset < 0 || offset + nbytes > buffer.size)
      refuse(ArgumentError, "place", nbytes, offset, buffer.size);
    const block = this.memory.adopt(buffer, nbytes, buffer.size, true);
    return this.note(new Tensor<E, S["length"]>(this, type, shape, block, offset));
  }

  /** Run a function, and free the tensors that it made but those it returns. */
  scope<T>(run: () => T): T {
    const made: Tensor<any>[] = [];
    this.scopes.push(made);
    let result: T | undefined;
    try {
      return (result = run());
    } finally {
      this.scopes.pop();
      const kept = new Set<unknown>([result, ...Object.values((result ?? {}) as object)]);
      for (const tensor of made)
        if (kept.has(tensor)) this.scopes.at(-1)?.push(tensor);
        else tensor.free();
    }
  }

  /** Submit what is recorded; resolve when the device has taken it, reject if it did not. */
  async submit(): Promise<void> {
    this.check();
    await this.recorder.submit();
    this.raise();
  }

  /** Return which shaders a kernel would run for some dims, and scalars that it asks for. */
  choices(kernel: KernelFunction, dims: Readonly<Record<string, number>>): string[] {
    return this.launcher.choices((kernel as unknown as { kernel: Kernel }).kernel, dims);
  }

  /** End the context; a device of one's own stays. */
  close(): void {
    this.ended ??= new ContextError("closed");
  }

  // What follows is the runtime's.

  /** Refuse to go on without a device. */
  check(): void {
    if (this.ended) throw this.ended;
  }

  make(element: ElementType, shape: Shape): Tensor<any, any> {
    this.check();
    const nbytes = bytesOf(element, product(shape));
    if (roundUp(nbytes, 16) > this.limits.tensorBytes)
      refuse(LimitError, "allocated", shape, nbytes, this.limits.tensorBytes);
    const block = this.memory.acquire(Math.max(nbytes, element.size));
    block.used = nbytes;
    return this.note(new Tensor(this, element, shape, block));
  }

  upload(block: Block, offset: number, bytes: Uint8Array<ArrayBuffer>): void {
    const { device, recorder, memory } = this;
    const size = roundUp(bytes.length, 4);
    if (!size) return;
    this.checkWords(block, offset, bytes.length);
    let data = bytes;
    if (size > bytes.length) (data = new Uint8Array(size)).set(bytes);
    if (!recorder.pending) {
      device.queue.writeBuffer(block.buffer, offset, data);
      return;
    }
    const staging = device.createBuffer({ size, usage: WRITE, mappedAtCreation: true });
    new Uint8Array(staging.getMappedRange()).set(data);
    staging.unmap();
    recorder.copy(staging, 0, block.buffer, offset, size);
    memory.doomed.push(staging);
  }

  /** Record a copy between blocks. */
  copy(from: Block, start: number, to: Block, end: number, nbytes: number): void {
    this.checkWords(from, start, nbytes);
    this.checkWords(to, end, nbytes);
    const size = roundUp(nbytes, 4);
    if (size) this.recorder.copy(from.buffer, start, to.buffer, end, size);
  }

  async download(block: Block, offset: number, nbytes: number): Promise<Uint8Array<ArrayBuffer>> {
    this.check();
    const { device, recorder } = this;
    const before = offset % 4;
    const size = roundUp(before + nbytes, 4);
    if (!size) return new Uint8Array();
    const staging = device.createBuffer({ size, usage: READ });
    recorder.copy(block.buffer, offset - before, staging, 0, size);
    try {
      const submitted = recorder.submit();
      await recorder.encoded;
      const mapped = staging.mapAsync(1).catch((error: Error) => error);
      await submitted;
      this.raise();
      const error = await mapped;
      this.check();
      if (error) throw error;
      return new Uint8Array(staging.getMappedRange().slice(before, before + nbytes));
    } finally {
      staging.destroy();
    }
  }

  note<T extends Tensor<any, any>>(tensor: T): T {
    this.scopes.at(-1)?.push(tensor);
    return tensor;
  }

  private raise(): void {
    this.check();
    const { fault } = this.recorder;
    this.recorder.fault = undefined;
    if (fault) throw fault;
  }

  private element(element: string | StructType<any>): ElementType {
    const type = typeof element === "string" ? leafType(element) : element;
    return type?.strides ? type : refuse(DtypeError, "element", element);
  }

  private checkWords(block: Block, offset: number, nbytes: number): void {
    if (offset % 4 || (nbytes % 4 && nbytes !== block.used))
      refuse(LimitError, "words", nbytes, offset);
  }
}
