/** Buffers of the device: handed out, given back, and handed out again. */
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
const USAGE = 0x80 | 0x4 | 0x8; // STORAGE, COPY_SRC and COPY_DST; node has no GPUBufferUsage

/** Return the capacity for a size: four steps to each power of two. */
export function sizeClass(nbytes: number): number {
  if (nbytes <= SMALLEST) return SMALLEST;
  const step = 2 ** Math.max(Math.floor(Math.log2(nbytes - 1)) - 2, 4);
  return Math.ceil(nbytes / step) * step;
}

/** The pool of a context. */
export class Memory {
  /** How many buffers were made, and how many are free. */
  readonly counts = { made: 0, free: 0 };
  /** Destroyed once what is recorded has been submitted. */
  doomed: Block[] = [];
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
    const capacity = Math.min(sizeClass(Math.max(nbytes, 16)), Math.floor(this.largest / 4) * 4);
    const block = this.free.get(capacity)?.pop();
    if (block) {
      this.counts.free--;
      this.freeBytes -= capacity;
      [block.used, block.tensors] = [nbytes, 0];
      return block;
    }
    this.counts.made++;
    this.device.pushErrorScope("out-of-memory");
    const buffer = this.device.createBuffer({ size: capacity, usage: USAGE });
    void this.device.popErrorScope().then(
      (error) =>
        error && this.report(new OutOfMemoryError("memory", [nbytes, error.message])),
      () => undefined,
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
    if (--block.tensors > 0 || block.shared) return;
    if (this.freeBytes + block.capacity > MOST_FREE) {
      this.doomed.push(block);
      return;
    }
    this.counts.free++;
    this.freeBytes += block.capacity;
    const list = this.free.get(block.capacity);
    if (list) list.push(block);
    else this.free.set(block.capacity, [block]);
  }
}
