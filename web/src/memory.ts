/** Buffers of the device: handed out, given back, and handed out again. */
import { cached, newUid } from "./element.js";
import { OutOfMemoryError } from "./errors.js";

/** A buffer, and how many tensors are in it. */
export interface Block {
  readonly buffer: GPUBuffer;
  readonly uid: number;
  readonly capacity: number;
  /** The bytes that its first tensor has. */
  used: number;
  tensors: number;
  /** Whether others know the buffer, so that it is nobody's to reuse. */
  shared: boolean;
}

const SMALLEST = 256;
/** Free memory above this is given back to the device. */
const MOST_FREE = 250e6;
export const USAGE = 0x80 | 0x4 | 0x8; // STORAGE, COPY_SRC and COPY_DST; node has no GPUBufferUsage

/** Return the capacity for a size: four steps to each power of two. */
const sizeClass = (nbytes: number): number => {
  const step = 2 ** Math.max(Math.floor(Math.log2(nbytes - 1)) - 2, 4);
  return Math.ceil(nbytes / step) * step;
};

/** Return a block of a buffer; one that is `shared` never gets into the pool. */
export const blockOf = (
  buffer: GPUBuffer,
  used: number,
  capacity: number,
  shared = false,
): Block => ({ buffer, uid: newUid(), capacity, used, tensors: 0, shared });

/** End an error scope of a device; report what was wrong in it. */
export const endScope = (device: GPUDevice, report: (why: string) => void): Promise<unknown> =>
  device.popErrorScope().then(
    (error) => error && report(error.message),
    () => undefined,
  );

/** The pool of a context. */
export type Memory = ReturnType<typeof makeMemory>;

/** Make the pool of a context. */
export const makeMemory = (device: GPUDevice, largest: number) => {
  const free = new Map<number, Block[]>();
  let freeBytes = 0;

  /** Take a block back if no tensor is in it. */
  const release = (block: Block): void => {
    const { buffer, capacity, shared } = block;
    if (--block.tensors > 0 || shared) return;
    if (freeBytes + capacity > MOST_FREE) memory.doomed.push(buffer);
    else {
      freeBytes += capacity;
      cached(free, capacity, () => []).push(block);
    }
  };
  const registry = new FinalizationRegistry(release);

  const memory = {
    /** Destroyed once what is recorded has been submitted. */
    doomed: [] as GPUBuffer[],
    /** The first error that no call could throw, until somebody waits. */
    fault: undefined as Error | undefined,
    release,

    /** Return a block for so many bytes. */
    acquire(nbytes: number): Block {
      const capacity = Math.min(sizeClass(Math.max(nbytes, SMALLEST)), largest - (largest % 4));
      const block = free.get(capacity)?.pop();
      if (block) {
        freeBytes -= capacity;
        [block.used, block.tensors] = [nbytes, 0];
        return block;
      }
      device.pushErrorScope("out-of-memory");
      const buffer = device.createBuffer({ size: capacity, usage: USAGE });
      void endScope(device, (why) => {
        memory.fault ??= new OutOfMemoryError("usage", nbytes, why);
      });
      return blockOf(buffer, nbytes, capacity);
    },

    /** Note that a tensor is in a block. */
    keep(tensor: object, block: Block): void {
      block.tensors++;
      registry.register(tensor, block, tensor);
    },

    /** Note that a tensor is freed. */
    drop(tensor: object, block: Block): void {
      registry.unregister(tensor);
      release(block);
    },
  };
  return memory;
};
