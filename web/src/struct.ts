/** Structs: records of JavaScript, and the bytes that shaders read. */
import { BYTES, leafType, put, RANGES, take, type LeafType } from "./element.js";
import { DtypeError, KerngenError, ShapeError, UniformRangeError } from "./errors.js";

/** A row of a layout: name, type, offset, lengths and stride of an array, of columns. */
export type Row = readonly [
  name: string,
  type: string | StructType<any>,
  offset: number,
  lengths?: readonly number[],
  stride?: number,
  columnStride?: number,
];

/** A type of values in memory. */
export type ElementType = LeafType | StructType<any>;

/** A struct: its layout, and what packs and unpacks its values. */
export class StructType<T> {
  constructor(
    readonly name: string,
    readonly size: number,
    readonly fields: readonly Row[],
  ) {}

  /** Return values as bytes, one behind the other, padding zeroed. */
  pack(values: T | readonly T[]): Uint8Array<ArrayBuffer> {
    const list: readonly unknown[] = Array.isArray(values) ? values : [values];
    const bytes = new Uint8Array(list.length * this.size);
    const view = new DataView(bytes.buffer);
    list.forEach((value, i) => {
      fit(this, [], value, (path) => `'${this.name}${path}'`);
      write(view, i * this.size, ["", this, 0], value);
    });
    return bytes;
  }

  /** Return the values that bytes hold. */
  unpack(bytes: Uint8Array): T[] {
    if (bytes.length % this.size)
      throw new ShapeError(
        `'${this.name}' is unpacked from ${this.size} bytes each, not ${bytes.length}.`,
      );
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const starts = Array.from({ length: bytes.length / this.size }, (_, i) => i * this.size);
    return starts.map((at) => read(view, at, ["", this, 0]) as T);
  }
}

/** Make a struct of its layout, as generated modules do. */
export function struct<T>(name: string, size: number, fields: readonly Row[]): StructType<T> {
  return new StructType(name, size, fields);
}

export const typeOf = (type: string | StructType<any>): ElementType =>
  typeof type === "string" ? leafType(type)! : type;

const isStruct = (type: ElementType): type is StructType<any> => "fields" in type;

/** Whether a type holds f16 numbers. */
export const holdsHalf = (type: ElementType): boolean =>
  isStruct(type) ? type.fields.some((f) => holdsHalf(typeOf(f[1]))) : type.kind === "f16";

/** Show a value in a message. */
export function shown(value: unknown): string {
  if (ArrayBuffer.isView(value)) return `a ${value.constructor.name}`;
  const text = typeof value === "object" ? (JSON.stringify(value) ?? `${value}`) : `${value}`;
  return text.length <= 80 ? text : `${text.slice(0, 76)} ...`;
}

/** Refuse a value that does not fit; `where` says whose it is, for a path within it. */
export function fit(
  type: ElementType,
  lengths: readonly number[],
  value: unknown,
  where: (path: string) => string,
  path = "",
): void {
  const refuse = (kind: new (text: string) => KerngenError, rule: string): never => {
    throw new kind(`${where(path)} is ${shown(value)}; ${rule}.`);
  };
  const shape = isStruct(type) ? lengths : [...lengths, ...type.shape];
  if (shape.length) {
    const items = value as ArrayLike<unknown>;
    if (typeof value !== "object" || value === null || items.length !== shape[0])
      return refuse(ShapeError, `expected ${shape.join(" x ")} values`);
    // What is left of the shape: of the array, then of the vector or matrix.
    const inner = isStruct(type) ? type : { ...type, shape: shape.slice(1) };
    const rest = isStruct(type) ? shape.slice(1) : [];
    for (let i = 0; i < items.length; i++) fit(inner, rest, items[i], where, `${path}[${i}]`);
  } else if (isStruct(type)) {
    if (typeof value !== "object" || value === null)
      return refuse(DtypeError, `expected a ${type.name}`);
    const record = value as Record<string, unknown>;
    for (const [name, of, , sizes = []] of type.fields)
      fit(typeOf(of), sizes, record[name], where, `${path}.${name}`);
  } else {
    const [least, most, limit] = RANGES[type.kind];
    if (typeof value !== "number" || (!limit && !Number.isInteger(value)))
      return refuse(
        DtypeError,
        `expected ${limit ? "a number" : "an integer"} (${type.kind})`,
      );
    const inside = limit
      ? Math.abs(value) < limit || !Number.isFinite(value)
      : least <= value && value <= most;
    if (!inside) refuse(UniformRangeError, `${type.kind} holds ${least} to ${most}`);
  }
}

/** Write a value that fits a row, `at` bytes from where the row's offset counts. */
export function write(view: DataView, at: number, row: Row, value: unknown): void {
  each(at, row, value, (place, type, one) => {
    if (isStruct(type)) {
      const record = one as Record<string, unknown>;
      for (const field of type.fields) write(view, place, field, record[field[0]]);
    } else put(view, place, type.kind, one as number);
    return undefined;
  });
}

/** Read the value of a row. */
export function read(view: DataView, at: number, row: Row): unknown {
  return each(at, row, undefined, (place, type) => {
    if (!isStruct(type)) return take(view, place, type.kind);
    return Object.fromEntries(
      type.fields.map((field) => [field[0], read(view, place, field)]),
    );
  });
}

/** Visit each number or struct of a row's value; return the results in its shape. */
function each(
  at: number,
  [, of, offset, lengths = [], stride = 0, columnStride]: Row,
  value: unknown,
  visit: (at: number, type: ElementType, value: unknown) => unknown,
): unknown {
  const type = typeOf(of);
  const strides = lengths.map((_, i) => stride * lengths.slice(i + 1).reduce((a, b) => a * b, 1));
  let shape = lengths;
  if (!isStruct(type)) {
    shape = [...lengths, ...type.shape];
    if (type.shape.length > 1) strides.push(columnStride ?? type.stride);
    if (type.shape.length) strides.push(BYTES[type.kind]);
  }
  const go = (axis: number, place: number, part: unknown): unknown => {
    if (axis === shape.length) return visit(place, type, part);
    return Array.from({ length: shape[axis]! }, (_, i) =>
      go(axis + 1, place + i * strides[axis]!, (part as ArrayLike<unknown> | undefined)?.[i]),
    );
  };
  return go(0, at + offset, value);
}
