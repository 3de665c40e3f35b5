/** Buffers of the device: handed out, given back, and handed out again. */
import { cached } from "./element.js";
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
const MOST_FREE = 2 ** 28;
export const USAGE = 0x80 | 0x4 | 0x8; // STORAGE, COPY_SRC and COPY_DST; node has no GPUBufferUsage

/** Return the capacity for a size: four steps to each power of two. */
function sizeClass(nbytes: number): number {
  const step = 2 ** Math.max(Math.floor(Math.log2(nbytes - 1)) - 2, 4);
  return Math.ceil(nbytes / step) * step;
}

/** End an error scope of a device; report what was wrong in it. */
export const endScope = (device: GPUDevice, report: (why: string) => void): Promise<void> =>
  device.popErrorScope().then(
    (error) => error && report(error.message),
    () => undefined,
  ) as Promise<void>;

/** The pool of a context. */
export class Memory {
  /** How many buffers were made. */
  made = 0;
  /** Destroyed once what is recorded has been submitted. */
  doomed: GPUBuffer[] = [];
  private readonly free = new Map<number, Block[]>();
  private freeBytes = 0;
  private uids = 0;
  private readonly registry = new FinalizationRegistry<Block>((block) => this.release(block));

  constructor(
    private readonly device: GPUDevice,
    private readonly largest: number,
    private readonly report: (error: Error) => void,
  ) {}

  /** Return a block for so many bytes. */
  acquire(nbytes: number): Block {
    const size = sizeClass(Math.max(nbytes, SMALLEST));
    const capacity = Math.min(size, Math.floor(this.largest / 4) * 4);
    const block = this.free.get(capacity)?.pop();
    if (block) {
      this.freeBytes -= capacity;
      [block.used, block.tensors] = [nbytes, 0];
      return block;
    }
    this.made++;
    this.device.pushErrorScope("out-of-memory");
    const buffer = this.device.createBuffer({ size: capacity, usage: USAGE });
    void endScope(this.device, (why) =>
      this.report(new OutOfMemoryError("memory", nbytes, why)),
    );
    return this.adopt(buffer, nbytes, capacity, false);
  }

  /** Return a block of a buffer; one that is `shared` never gets into the pool. */
  adopt(buffer: GPUBuffer, used: number, capacity: number, shared: boolean): Block {
    return { buffer, uid: ++this.uids, capacity, used, tensors: 0, shared };
  }

  /** Note that a tensor is in a block. */
  keep(tensor: object, block: Block): void {
    block.tensors++;
    this.registry.register(tensor, block, tensor);
  }

  /** Note that a tensor is freed. */
  drop(tensor: object, block: Block): void {
    this.registry.unregister(tensor);
    this.release(block);
  }

  /** Take a block back if no tensor is in it. */
  release(block: Block): void {
    const { buffer, capacity, shared } = block;
    if (--block.tensors > 0 || shared) return;
    if (this.freeBytes + capacity > MOST_FREE) this.doomed.push(buffer);
    else {
      this.freeBytes += capacity;
      cached(this.free, capacity, () => []).push(block);
    }
  }
}
