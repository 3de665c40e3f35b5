/**
 * Recording: calls are noted, and submitted together when something is read.
 *
 * A chain of calls is one submission, as long as its pipelines are there; the first time it
 * waits for them, and what comes after waits for it.
 */
import { ValidationError } from "./errors.js";
import type { Memory } from "./memory.js";
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
  private full: Chunk[] = [];
  private readonly free: Chunk[] = [];
  private chunk: Chunk | undefined;
  private chunks = 0;
  private waiting = 0;
  /** Resolves once all that was submitted is in the device's queue. */
  encoded: Promise<void> = Promise.resolve();
  private tail: Promise<void> = Promise.resolve();

  constructor(
    private readonly device: GPUDevice,
    private readonly memory: Memory,
  ) {}

  /** Whether something recorded has not been submitted. */
  get pending(): boolean {
    return this.ops.length > 0 || this.waiting > 0;
  }

  /** Note an operation. */
  add(op: Op): void {
    this.ops.push(op);
  }

  /** Submit what has become long; call it between calls of kernels. */
  relieve(): void {
    if (this.ops.length >= MOST) void this.submit();
  }

  /** Return a chunk with room for so many bytes. */
  room(nbytes: number): Chunk {
    if (this.chunk && this.chunk.used + nbytes <= this.chunk.view.byteLength) return this.chunk;
    if (this.chunk) this.full.push(this.chunk);
    this.chunk = (nbytes <= CHUNK ? this.free.pop() : undefined) ?? this.makeChunk(nbytes);
    return this.chunk;
  }

  /** Submit; what is returned resolves once it is, and never rejects. */
  submit(): Promise<void> {
    const { ops, full } = this;
    const doomed = this.memory.doomed;
    if (this.chunk) full.push(this.chunk);
    [this.ops, this.full, this.chunk, this.memory.doomed] = [[], [], undefined, []];
    const shaders = new Set(ops.flatMap((op) => (typeof op === "function" ? [] : [op.shader])));
    const missing = [...shaders].filter((each) => !each.pipeline);
    let checked = Promise.resolve();
    const run = (): void => {
      checked = this.run(ops, full, doomed);
    };
    if (!this.waiting && !missing.length) run();
    else {
      this.waiting++;
      this.encoded = this.encoded
        .then(() => Promise.all(missing.map((each) => each.made)))
        .then(() => {
          this.waiting--;
          run();
        });
    }
    const before = this.tail;
    this.tail = this.encoded.then(() => checked).then(() => before);
    return this.tail;
  }

  /** Encode and submit now; resolve when the device has looked at it. */
  private run(ops: Op[], chunks: Chunk[], doomed: { buffer: GPUBuffer }[]): Promise<void> {
    const failed = ops.find((op) => typeof op !== "function" && op.shader.error);
    let checked = Promise.resolve();
    if (failed && typeof failed !== "function") this.fault ??= failed.shader.error;
    else if (ops.length) {
      this.device.pushErrorScope("validation");
      for (const { buffer, view, used } of chunks)
        this.device.queue.writeBuffer(buffer, 0, view.buffer as ArrayBuffer, 0, used);
      this.device.queue.submit([encode(this.device, ops)]);
      this.submissions++;
      checked = this.device.popErrorScope().then(
        (error) => {
          if (error) this.fault ??= new ValidationError("work", [error.message]);
        },
        () => undefined,
      );
    }
    for (const chunk of chunks) {
      chunk.used = 0;
      if (chunk.view.byteLength === CHUNK) this.free.push(chunk);
      else doomed.push(chunk);
    }
    for (const each of doomed) each.buffer.destroy();
    return checked;
  }

  private makeChunk(nbytes: number): Chunk {
    const size = Math.max(nbytes, CHUNK);
    const buffer = this.device.createBuffer({ size, usage: UNIFORM });
    return { uid: ++this.chunks, buffer, view: new DataView(new ArrayBuffer(size)), used: 0 };
  }
}

function encode(device: GPUDevice, ops: readonly Op[]): GPUCommandBuffer {
  const encoder = device.createCommandEncoder();
  let pass: GPUComputePassEncoder | undefined;
  let last: Compiled | undefined;
  for (const op of ops) {
    if (typeof op === "function") {
      pass?.end();
      [pass, last] = [undefined, undefined];
      op(encoder);
      continue;
    }
    pass ??= encoder.beginComputePass();
    if (op.shader !== last) pass.setPipeline(op.shader.pipeline!);
    last = op.shader;
    pass.setBindGroup(0, op.group, op.shader.usesUniform ? [op.offset] : []);
    pass.dispatchWorkgroups(op.x, op.y);
  }
  pass?.end();
  return encoder.finish();
}
