/** Structs: records of JavaScript, and the bytes that shaders read. */
import { leafType, newUid, product, put, take, type Kind, type LeafType } from "./element.js";
import { DtypeError, refuse, ShapeError, UniformRangeError } from "./errors.js";

/** A row of a layout: name, type, offset, lengths and stride of an array, of columns. */
export type Row = readonly [
  name: string,
  type: string | ElementType,
  offset: number,
  lengths?: readonly number[],
  stride?: number,
  columnStride?: number,
];

/** A type of values in memory. */
export type ElementType = LeafType | StructType<any>;

/** A struct: its layout, and what packs and unpacks its values. */
export class StructType<T> {
  /** What call plans are found by: a name that no other type has. @internal */
  readonly key: string;
  // A value in memory is one struct, where one of a leaf has numbers along axes.
  readonly shape: readonly number[] = [];
  readonly strides: readonly number[] = [];

  constructor(
    readonly name: string,
    readonly size: number,
    readonly fields: readonly Row[],
  ) {
    this.key = `${name}#${newUid()}`;
  }

  /** Return values as bytes, one behind the other, padding zeroed. */
  pack(values: T | readonly T[]): Uint8Array<ArrayBuffer> {
    const list: readonly unknown[] = [values].flat();
    const bytes = new Uint8Array(list.length * this.size);
    const view = new DataView(bytes.buffer);
    list.forEach((each, i) => fit(["", this, i * this.size], each, ["struct", this.name], view));
    return bytes;
  }

  /** Return the values that bytes hold. */
  unpack(bytes: Uint8Array): T[] {
    const { size } = this;
    const { buffer, byteOffset, length } = bytes;
    if (length % size) refuse(ShapeError, "unpack", this, length);
    const view = new DataView(buffer, byteOffset, length);
    const number = (at: number, kind: Kind): number => take(view, at, kind);
    return visit(["", this, 0, [length / size], size], 0, undefined, number) as T[];
  }
}

/** Make a struct of its layout, as generated modules do. */
export const struct = <T>(name: string, size: number, fields: readonly Row[]): StructType<T> =>
  new StructType(name, size, fields);

export const typeOf = (type: string | ElementType): ElementType =>
  typeof type === "string" ? leafType(type)! : type;

/** What a value is of: a struct, an upload at an index, or a kernel's scalar argument. */
export type Where = readonly ["struct" | "value" | "" | object, name: string, index?: number];

/** Refuse what is no number of a kind. */
export const checkNumber = (kind: Kind, value: unknown, where: Where, path = ""): void => {
  const { least, most, limit } = kind;
  if (typeof value !== "number" || (!limit && !Number.isInteger(value)))
    return refuse(DtypeError, "number", where, path, value, kind);
  const isInside = limit
    ? Math.abs(value) < limit || !Number.isFinite(value)
    : least <= value && value <= most;
  if (!isInside)
    refuse(where[0] === "value" ? DtypeError : UniformRangeError, "limit", where, path, value, kind);
};

/** Refuse a value that does not fit a row; write one that does, if there is where to. */
export const fit = (row: Row, value: unknown, where: Where, view?: DataView, at = 0): unknown =>
  visit(
    row,
    at,
    value,
    (place, kind, x, path) => {
      checkNumber(kind, x, where, path);
      if (view) put(view, place, kind, x as number);
    },
    where,
  );

/**
 * Visit the numbers of a row's value; return what comes of them, in its shape.
 *
 * What is not of that shape is refused where one names whose it is.
 */
const visit = (
  [, of, offset, lengths = [], stride = 0, columnStride]: Row,
  at: number,
  value: any,
  number: (at: number, kind: Kind, value: unknown, path: string) => unknown,
  where?: Where,
  before = "",
): unknown => {
  const type = typeOf(of);
  const shape = [...lengths, ...type.shape];
  const strides = [
    ...lengths.map((_, i) => stride * product(lengths.slice(i + 1))),
    ...type.strides,
  ];
  if (columnStride) strides[lengths.length] = columnStride;
  const go = (axis: number, place: number, part: any, path: string): unknown => {
    const isObject = Object(part) === part;
    const length = shape[axis];
    if (length !== undefined) {
      if (where && !(isObject && part.length === length))
        refuse(ShapeError, "lengths", where, path, part, shape.slice(axis));
      return Array.from({ length }, (_, i) =>
        go(axis + 1, place + i * strides[axis]!, part?.[i], `${path}[${i}]`),
      );
    }
    if (!("fields" in type)) return number(place, type.kind, part, path);
    if (where && !isObject) refuse(DtypeError, "fields", where, path, part, type);
    return Object.fromEntries(
      type.fields.map((row) => [
        row[0],
        visit(row, place, part?.[row[0]], number, where, `${path}.${row[0]}`),
      ]),
    );
  };
  return go(0, at + offset, value, before);
};
