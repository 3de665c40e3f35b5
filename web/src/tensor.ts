/** Tensors: elements in a buffer of the device. */
import type { Context } from "./context.js";
import { bytesOf, LONGEST, product, put, roundUp, take, type Data, type Leaf, type LeafType } from "./element.js";
import { refuse, ShapeError, StateError } from "./errors.js";
import type { Block } from "./memory.js";
import { checkNumber, type ElementType, type StructType } from "./struct.js";

export type Shape = readonly number[];
/** What a constructor takes as an element type: a name, or the object of a struct. */
export type ElementOf<E> = E extends Leaf ? E : StructType<E>;
/** What can be uploaded. */
export type Values = ArrayLike<number> | readonly object[];

export const sameShape = (a: Shape, b: Shape): boolean => `${a}` === `${b}`;
/** Return what a shader binds of a buffer for so many bytes. */
export const boundBytes = (nbytes: number): number => roundUp(Math.max(nbytes, 16), 16);

/** A tensor of elements `E` and rank `R`; contexts make them, and calls of kernels. */
export class Tensor<E, R extends number = number> {
  declare readonly $rank: R;
  readonly nbytes: number;
  /** What call plans are found by. @internal */
  readonly key: string;
  /** Whether a shader can bind it where it is. @internal */
  readonly direct: boolean;
  /** @internal */
  readonly bound: number;
  private freed = false;

  constructor(
    readonly ctx: Context,
    readonly element: ElementType,
    readonly shape: Shape,
    readonly block: Block,
    readonly offset = 0,
  ) {
    this.nbytes = bytesOf(element, product(shape));
    this.key = `${element.key}[${shape}]`;
    const whole = !offset && this.nbytes === block.used;
    this.bound = whole
      ? Math.min(boundBytes(Math.max(this.nbytes, element.size)), block.capacity)
      : roundUp(this.nbytes, 4);
    this.direct = whole || (this.bound > 0 && offset % ctx.alignment === 0);
    ctx.memory.keep(this, block);
    ctx.made?.push(this);
  }

  get rank(): number {
    return this.shape.length;
  }

  get size(): number {
    return product(this.shape);
  }

  /** The buffer that has the elements, from `offset` on; what was recorded is submitted. */
  get buffer(): GPUBuffer {
    this.check();
    void this.ctx.recorder.submit();
    this.block.shared = true;
    return this.block.buffer;
  }

  /** Submit what is recorded, and return the elements as a new array. */
  async read(): Promise<Data<E>> {
    this.check();
    const bytes = await this.ctx.recorder.download(this.block, this.offset, this.nbytes);
    return decode(bytes, this.element, this.size) as Data<E>;
  }

  /** Overwrite the elements with those of an array, or of a tensor of this type. */
  write(values: Values | Tensor<E, R>): void {
    this.check();
    if (!(values instanceof Tensor))
      return this.ctx.recorder.upload(this.block, this.offset, encode(values, this.element, this.size));
    values.check();
    if (values.key !== this.key) refuse(ShapeError, "type", this, values);
    this.ctx.recorder.copy(values.block, values.offset, this.block, this.offset, this.nbytes);
  }

  /** Return a view with another shape; one length may be -1. */
  reshape<const S extends Shape>(shape: S): Tensor<E, S["length"]> {
    this.check();
    const lengths = [shape as Shape].flat();
    const rest = lengths.indexOf(-1);
    if (rest >= 0) lengths[rest] = this.size / -product(lengths);
    if (!isShape(lengths) || product(lengths) !== this.size)
      refuse(ShapeError, "reshape", shape, this.size);
    return new Tensor(this.ctx, this.element, lengths, this.block, this.offset);
  }

  /** Return a view of the rows from `start` up to `stop`, of the first axis. */
  rows(start: number, stop: number): Tensor<E, R> {
    this.check();
    const [count, ...inner] = this.shape;
    if (!(isShape([start, stop]) && start <= stop && stop <= count!))
      refuse(ShapeError, "rows", start, stop, count);
    const [offset, end] = [start, stop].map((row) => row * product(inner) * this.element.size);
    if (offset! % 1 || (end! % 1 && stop < count!))
      refuse(ShapeError, "byte", start, stop, this);
    return new Tensor(this.ctx, this.element, [stop - start, ...inner], this.block, this.offset + offset!);
  }

  /** Give the memory back, which else happens when nothing refers to it any more. */
  free(): void {
    if (!this.freed) this.ctx.memory.drop(this, this.block);
    this.freed = true;
  }

  /** Refuse to use what was freed. @internal */
  check(): void {
    this.ctx.recorder.check();
    if (this.freed) refuse(StateError, "free", this);
  }

  toString(): string {
    return `Tensor(${this.element.name}[${this.shape.join(", ")}])`;
  }
}

export type Scalar<E> = Tensor<E, 0>;
export type Vector<E> = Tensor<E, 1>;
export type Matrix<E> = Tensor<E, 2>;
export type Tensor3<E> = Tensor<E, 3>;
export type Tensor4<E> = Tensor<E, 4>;

/** Whether numbers lie in memory as in an array of JavaScript. */
const isPlain = ({ kind, lanes, stride }: LeafType): boolean =>
  kind.bits === 32 && stride === lanes * 4;

/** Return where the numbers of elements are, one after the other. */
const placesOf =
  ({ kind, lanes, stride }: LeafType) =>
  (i: number): number =>
    Math.floor(i / lanes) * stride + (i % lanes) * (kind.bits / 8);

/** Return elements as bytes. */
export const encode = (values: Values, type: ElementType, count: number): Uint8Array<ArrayBuffer> => {
  const expected = count * product(type.shape);
  if (values?.length !== expected) refuse(ShapeError, "count", expected, values?.length);
  if ("fields" in type) return type.pack(values as readonly object[]);
  const { kind, name } = type;
  if (isPlain(type) && values instanceof kind.array)
    return new Uint8Array(values.slice().buffer as ArrayBuffer);
  const bytes = new Uint8Array(bytesOf(type, count));
  const view = new DataView(bytes.buffer);
  const place = placesOf(type);
  for (let i = 0; i < expected; i++) {
    checkNumber(kind, values[i], ["value", name, i]);
    put(view, place(i), kind, values[i] as number);
  }
  return bytes;
};

/** Return bytes as elements; vectors of three without the gaps between them. */
export const decode = (
  bytes: Uint8Array<ArrayBuffer>,
  type: ElementType,
  count: number,
): unknown => {
  if ("fields" in type) return type.unpack(bytes);
  const { kind } = type;
  if (isPlain(type)) return new kind.array(bytes.buffer);
  const view = new DataView(bytes.buffer);
  const place = placesOf(type);
  return new kind.array(count * product(type.shape)).map((_, i) => take(view, place(i), kind));
};

const isShape = (shape: unknown): boolean =>
  Array.isArray(shape) &&
  shape.every((each) => Number.isInteger(each) && 0 <= each && each <= LONGEST);

/** Refuse a shape with lengths that no axis can have. */
export const checkShape = (shape: Shape): void => {
  if (!isShape(shape)) refuse(ShapeError, "shape", shape);
};
