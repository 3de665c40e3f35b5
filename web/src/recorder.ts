/**
 * Recording: calls are noted, and submitted together when something is read.
 *
 * A chain of calls is one submission, as long as its pipelines are there; the first time it
 * waits for them, and what comes after waits for it.
 */
import { ValidationError } from "./errors.js";
import { endScope, type Memory } from "./memory.js";
import type { Compiled } from "./shaders.js";

/** A dispatch, or something that is done to an encoder between passes. */
export type Op =
  | {
      readonly shader: Compiled;
      readonly group: GPUBindGroup;
      readonly offset: number;
      readonly x: number;
      readonly y: number;
    }
  | ((encoder: GPUCommandEncoder) => void);

/** A part of the arena, where uniform structs lie until they are submitted. */
export interface Chunk {
  readonly uid: number;
  readonly buffer: GPUBuffer;
  readonly view: DataView;
  used: number;
}

/** What a uniform struct has at most, and the arena many of. */
const CHUNK = 65536;
const UNIFORM = 0x40 | 0x8; // UNIFORM and COPY_DST
/** So many operations are submitted without being asked to. */
const MOST = 1000;

export class Recorder {
  /** How many submissions there were. */
  submissions = 0;
  /** The first error that no call could throw, until somebody waits. */
  fault: Error | undefined;
  private ops: Op[] = [];
  /** Those in use; the last one has room. */
  private chunks: Chunk[] = [];
  private readonly free: Chunk[] = [];
  private made = 0;
  private waiting = 0;
  /** Resolves once all that was submitted is in the device's queue. */
  encoded: Promise<void> = Promise.resolve();
  private tail: Promise<void> = this.encoded;

  constructor(
    private readonly device: GPUDevice,
    private readonly memory: Memory,
  ) {}

  /** Whether something recorded has not been submitted. */
  get pending(): boolean {
    return this.ops.length + this.waiting > 0;
  }

  /** Note an operation. */
  add(op: Op): void {
    this.ops.push(op);
  }

  /** Note a copy between buffers. */
  copy(from: GPUBuffer, start: number, to: GPUBuffer, end: number, size: number): void {
    this.add((encoder) => encoder.copyBufferToBuffer(from, start, to, end, size));
  }

  /** Submit what has become long; call it between calls of kernels. */
  relieve(): void {
    if (this.ops.length >= MOST) void this.submit();
  }

  /** Return a chunk with room for so many bytes. */
  room(nbytes: number): Chunk {
    let chunk = this.chunks.at(-1);
    if (!chunk || chunk.used + nbytes > CHUNK)
      this.chunks.push((chunk = this.free.pop() ?? this.makeChunk()));
    return chunk;
  }

  /** Submit; what is returned resolves once it is, and never rejects. */
  submit(): Promise<void> {
    const { ops, chunks, memory } = this;
    const { doomed } = memory;
    [this.ops, this.chunks, memory.doomed] = [[], [], []];
    const shaders = ops.flatMap((op) => ("shader" in op ? op.shader : []));
    const missing = shaders.filter((each) => !each.pipeline);
    let checked: Promise<void> | undefined;
    const run = (): void => {
      const failed = shaders.find((each) => each.error);
      if (failed) this.fault ??= failed.error;
      else if (ops.length) checked = this.send(ops, chunks);
      for (const chunk of chunks) chunk.used = 0;
      this.free.push(...chunks);
      for (const each of doomed) each.destroy();
    };
    if (this.waiting || missing.length) {
      this.waiting++;
      this.encoded = this.encoded
        .then(() => Promise.all(missing.map((each) => each.made)))
        .then(() => {
          this.waiting--;
          run();
        });
    } else run();
    const before = this.tail;
    return (this.tail = this.encoded.then(() => checked).then(() => before));
  }

  /** Encode and submit now; resolve when the device has looked at it. */
  private send(ops: readonly Op[], chunks: readonly Chunk[]): Promise<void> {
    const { device } = this;
    device.pushErrorScope("validation");
    for (const { buffer, view, used } of chunks)
      device.queue.writeBuffer(buffer, 0, view.buffer as ArrayBuffer, 0, used);
    device.queue.submit([encode(device, ops)]);
    this.submissions++;
    return endScope(device, (why) => {
      this.fault ??= new ValidationError("work", why);
    });
  }

  private makeChunk(): Chunk {
    const buffer = this.device.createBuffer({ size: CHUNK, usage: UNIFORM });
    return { uid: ++this.made, buffer, view: new DataView(new ArrayBuffer(CHUNK)), used: 0 };
  }
}

function encode(device: GPUDevice, ops: readonly Op[]): GPUCommandBuffer {
  const encoder = device.createCommandEncoder();
  let pass: GPUComputePassEncoder | undefined;
  let last: Compiled | undefined;
  for (const op of ops) {
    if ("shader" in op) {
      const { shader, group, offset, x, y } = op;
      pass ??= encoder.beginComputePass();
      if (shader !== last) pass.setPipeline(shader.pipeline!);
      last = shader;
      pass.setBindGroup(0, group, shader.uniformBytes ? [offset] : []);
      pass.dispatchWorkgroups(x, y);
    } else {
      pass?.end();
      pass = last = undefined;
      op(encoder);
    }
  }
  pass?.end();
  return encoder.finish();
}
