/**
 * Recording: calls are noted, and submitted together when something is read.
 *
 * A chain of calls is one submission, as long as its pipelines are there; the first time it
 * waits for them, and what comes after waits for it.
 */
import { newUid, roundUp } from "./element.js";
import { LimitError, refuse, ValidationError, type KerngenError } from "./errors.js";
import { endScope, type Block, type Memory } from "./memory.js";
import type { Step } from "./planner.js";
import type { Compiled } from "./shaders.js";

/** A dispatch, or something that is done to an encoder between passes. */
export type Op =
  | {
      readonly step: Step;
      readonly group: GPUBindGroup;
      readonly offset: number;
    }
  | ((encoder: GPUCommandEncoder) => void);

/** A part of the arena, where uniform structs lie until they are submitted. */
export interface Chunk {
  readonly uid: number;
  readonly buffer: GPUBuffer;
  readonly view: DataView<ArrayBuffer>;
  used: number;
}

/** What a uniform struct has at most, and the arena many of. */
const CHUNK = 65536;
const UNIFORM = 0x40 | 0x8; // UNIFORM and COPY_DST
const READ = 0x1 | 0x8; // MAP_READ and COPY_DST
const WRITE = 0x4; // COPY_SRC
/** So many operations are submitted without being asked to. */
const MOST = 1000;

/** What records the work of a context. */
export type Recorder = ReturnType<typeof makeRecorder>;

/** Make what records the work of a context. */
export const makeRecorder = (device: GPUDevice, memory: Memory) => {
  let ops: Op[] = [];
  /** Those in use; the last one has room. */
  let chunks: Chunk[] = [];
  const free: Chunk[] = [];
  let waiting = 0;
  /** Resolves once all that was submitted is in the device's queue. */
  let encoded = Promise.resolve();
  let tail = encoded;

  const makeChunk = (): Chunk => ({
    uid: newUid(),
    buffer: device.createBuffer({ size: CHUNK, usage: UNIFORM }),
    view: new DataView(new ArrayBuffer(CHUNK)),
    used: 0,
  });

  /** Encode and submit now; resolve when the device has looked at it. */
  const send = (sent: readonly Op[], used: readonly Chunk[]): Promise<unknown> => {
    device.pushErrorScope("validation");
    for (const chunk of used)
      device.queue.writeBuffer(chunk.buffer, 0, chunk.view.buffer, 0, chunk.used);
    device.queue.submit([encode(device, sent)]);
    return endScope(device, (why) => {
      memory.fault ??= new ValidationError("validation", why);
    });
  };

  const copyBytes = (
    from: GPUBuffer,
    start: number,
    to: GPUBuffer,
    end: number,
    size: number,
  ): void => recorder.add((encoder) => encoder.copyBufferToBuffer(from, start, to, end, size));

  const raise = (): void => {
    recorder.check();
    const { fault } = memory;
    memory.fault = undefined;
    if (fault) throw fault;
  };

  const recorder = {
    /** Why nothing can go on. */
    ended: undefined as KerngenError | undefined,

    /** Refuse to go on without a device. */
    check(): void {
      if (recorder.ended) throw recorder.ended;
    },

    /** Note an operation. */
    add(op: Op): void {
      ops.push(op);
    },

    /** Submit what has become long, and return a chunk with room for so many bytes. */
    room(nbytes: number): Chunk {
      if (ops.length >= MOST) void recorder.submit();
      let chunk = chunks.at(-1);
      if (!chunk || chunk.used + nbytes > CHUNK) chunks.push((chunk = free.pop() ?? makeChunk()));
      return chunk;
    },

    /** Submit; what is returned resolves once it is, and never rejects. */
    submit(): Promise<void> {
      const [sent, used, { doomed }] = [ops, chunks, memory];
      [ops, chunks, memory.doomed] = [[], [], []];
      const shaders = sent.flatMap((op) => (typeof op === "function" ? [] : op.step.shader));
      const missing = shaders.filter((each) => !each.pipeline);
      let checked: Promise<unknown> | undefined;
      const run = (): void => {
        const failed = shaders.find((each) => each.error);
        if (failed) memory.fault ??= failed.error;
        else if (sent.length) checked = send(sent, used);
        for (const chunk of used) chunk.used = 0;
        free.push(...used);
        for (const each of doomed) each.destroy();
      };
      if (waiting || missing.length) {
        waiting++;
        encoded = Promise.all([encoded, ...missing.map((each) => each.made)]).then(() => {
          waiting--;
          run();
        });
      } else run();
      const before = tail;
      return (tail = encoded.then(() => checked).then(() => before));
    },

    /** Submit; reject if the device did not take it. */
    async flush(): Promise<void> {
      recorder.check();
      await recorder.submit();
      raise();
    },

    /** Overwrite bytes of a block, after what is recorded. */
    upload(block: Block, offset: number, bytes: Uint8Array<ArrayBuffer>): void {
      const size = roundUp(bytes.length, 4);
      if (!size) return;
      checkWords(block, offset, bytes.length);
      if (!ops.length && !waiting && size === bytes.length) {
        device.queue.writeBuffer(block.buffer, offset, bytes);
        return;
      }
      const staging = device.createBuffer({ size, usage: WRITE, mappedAtCreation: true });
      new Uint8Array(staging.getMappedRange()).set(bytes);
      staging.unmap();
      copyBytes(staging, 0, block.buffer, offset, size);
      memory.doomed.push(staging);
    },

    /** Record that bytes of a block become 0. */
    wipe({ buffer }: Block, offset: number, nbytes: number): void {
      recorder.add((encoder) => encoder.clearBuffer(buffer, offset, nbytes));
    },

    /** Record a copy between blocks. */
    copy(from: Block, start: number, to: Block, end: number, nbytes: number): void {
      checkWords(from, start, nbytes);
      checkWords(to, end, nbytes);
      const size = roundUp(nbytes, 4);
      if (size) copyBytes(from.buffer, start, to.buffer, end, size);
    },

    /** Submit, and return bytes of a block. */
    async download(block: Block, offset: number, nbytes: number): Promise<Uint8Array<ArrayBuffer>> {
      recorder.check();
      const before = offset % 4;
      const size = roundUp(before + nbytes, 4);
      if (!size) return new Uint8Array();
      const staging = device.createBuffer({ size, usage: READ });
      copyBytes(block.buffer, offset - before, staging, 0, size);
      try {
        const submitted = recorder.submit();
        await encoded;
        const mapped = staging.mapAsync(1).catch((error: Error) => error);
        await submitted;
        raise();
        const error = await mapped;
        recorder.check();
        if (error) throw error;
        return new Uint8Array(staging.getMappedRange().slice(before, before + nbytes));
      } finally {
        staging.destroy();
      }
    },
  };
  return recorder;
};

/** Refuse what is no whole words; the end of a buffer may be. */
const checkWords = (block: Block, offset: number, nbytes: number): void => {
  if (offset % 4 || (nbytes % 4 && nbytes !== block.used))
    refuse(LimitError, "offset", nbytes, offset);
};

const encode = (device: GPUDevice, ops: readonly Op[]): GPUCommandBuffer => {
  const encoder = device.createCommandEncoder();
  let pass: GPUComputePassEncoder | undefined;
  let last: Compiled | undefined;
  for (const op of ops) {
    if (typeof op === "function") {
      pass?.end();
      pass = last = undefined;
      op(encoder);
    } else {
      const { shader, x, y } = op.step;
      const { group, offset } = op;
      pass ??= encoder.beginComputePass();
      if (shader !== last) pass.setPipeline(shader.pipeline!);
      last = shader;
      pass.setBindGroup(0, group, shader.uniformBytes ? [offset] : []);
      pass.dispatchWorkgroups(x, y);
    }
  }
  pass?.end();
  return encoder.finish();
};
