/** Element types of tensors: numbers, vectors and matrices by WGSL's names, and structs. */
import { round } from "./host.js";

type Digit = 2 | 3 | 4;
type Floats = "f32" | "f16" | `vec${Digit}${"f" | "h"}` | `mat${Digit}x${Digit}${"f" | "h"}`;
type Signed = "i32" | "i8" | "i4" | `vec${Digit}i`;
type Unsigned = "u32" | "u8" | "u4" | `vec${Digit}u`;
/** The name of a number, vector or matrix: `"f32"`, `"vec3f"`. */
export type Leaf = Floats | Signed | Unsigned;

export type Vec2 = readonly [number, number];
export type Vec3 = readonly [number, number, number];
export type Vec4 = readonly [number, number, number, number];
export type Mat2x2 = readonly [Vec2, Vec2];
export type Mat2x3 = readonly [Vec3, Vec3];
export type Mat2x4 = readonly [Vec4, Vec4];
export type Mat3x2 = readonly [Vec2, Vec2, Vec2];
export type Mat3x3 = readonly [Vec3, Vec3, Vec3];
export type Mat3x4 = readonly [Vec4, Vec4, Vec4];
export type Mat4x2 = readonly [Vec2, Vec2, Vec2, Vec2];
export type Mat4x3 = readonly [Vec3, Vec3, Vec3, Vec3];
export type Mat4x4 = readonly [Vec4, Vec4, Vec4, Vec4];

/** What is read of a tensor: an array of numbers, or of a struct's records. */
export type Data<E> = E extends Floats
  ? Float32Array
  : E extends Signed
    ? Int32Array
    : E extends Unsigned
      ? Uint32Array
      : E[];

/** The kind of a number: how memory keeps it. */
export type Kind = "f32" | "f16" | "i32" | "u32" | "i8" | "u8" | "i4" | "u4";

/**
 * A leaf as memory keeps it: vectors lie `stride` bytes apart, elements `size`; half a byte,
 * where two share one.
 */
export interface LeafType {
  readonly name: string;
  readonly kind: Kind;
  /** Of a value: none of a scalar, `[columns, rows]` of a matrix. */
  readonly shape: readonly number[];
  readonly stride: number;
  readonly size: number;
}

const KINDS: Record<string, Kind> = { f: "f32", h: "f16", i: "i32", u: "u32" };
const LEAVES = new Map<string, LeafType | undefined>();

/** Return the type of a leaf's name; none if it is no such name. */
export function leafType(name: string): LeafType | undefined {
  if (!LEAVES.has(name)) LEAVES.set(name, readLeaf(name));
  return LEAVES.get(name);
}

function readLeaf(name: string): LeafType | undefined {
  const match = /^(?:([fiu]32|f16|[iu][48])|vec([234])([fhiu])|mat([234])x([234])([fh]))$/.exec(name);
  if (!match) return undefined;
  const [, scalar, width, of, columns, rows, held] = match;
  const kind = (scalar ?? KINDS[of ?? held!]) as Kind;
  const shape = [columns, rows ?? width].filter(Boolean).map(Number);
  const lanes = shape.at(-1) ?? 1;
  const stride = BYTES[kind] * (lanes === 3 ? 4 : lanes);
  return { name, kind, shape, stride, size: stride * (columns ? Number(columns) : 1) };
}

const F32_MOST = (2 - 2 ** -23) * 2 ** 127;
export const BYTES = { f32: 4, f16: 2, i32: 4, u32: 4, i8: 1, u8: 1, i4: 0.5, u4: 0.5 };
/** The least and greatest of each, and what the magnitude of a float must be below. */
export const RANGES: Record<Kind, readonly [number, number, number]> = {
  f32: [-F32_MOST, F32_MOST, F32_MOST + 2 ** 103],
  f16: [-65504, 65504, 65520],
  i32: [-(2 ** 31), 2 ** 31 - 1, 0],
  u32: [0, 2 ** 32 - 1, 0],
  i8: [-128, 127, 0],
  u8: [0, 255, 0],
  i4: [-8, 7, 0],
  u4: [0, 15, 0],
};

/** Return how many bytes elements take; two of 4 bits share one. */
export const bytesOf = (type: { readonly size: number }, count: number): number =>
  Math.ceil(type.size * count);

/** Write a number that is in range; of 4 bits, at a half of a byte that is 0. */
export function put(view: DataView, at: number, kind: Kind, value: number): void {
  // An engine's NaN may have any bits.
  if (kind === "f32" && Number.isNaN(value)) view.setUint32(at, 0x7fc00000, true);
  else if (kind === "f32") view.setFloat32(at, value, true);
  else if (kind === "f16") view.setUint16(at, toHalf(value), true);
  else if (kind === "i32") view.setInt32(at, value, true);
  else if (kind === "u32") view.setUint32(at, value, true);
  else if (BYTES[kind] === 1) view.setUint8(at, value);
  else {
    const byte = Math.floor(at);
    view.setUint8(byte, view.getUint8(byte) | ((value & 15) << (at > byte ? 4 : 0)));
  }
}

/** Read a number. */
export function take(view: DataView, at: number, kind: Kind): number {
  if (kind === "f32") return view.getFloat32(at, true);
  if (kind === "f16") return fromHalf(view.getUint16(at, true));
  if (kind === "i32") return view.getInt32(at, true);
  if (kind === "u32") return view.getUint32(at, true);
  const byte = Math.floor(at);
  if (BYTES[kind] === 1) return kind === "i8" ? view.getInt8(byte) : view.getUint8(byte);
  const half = (view.getUint8(byte) >> (at > byte ? 4 : 0)) & 15;
  return kind === "i4" && half > 7 ? half - 16 : half;
}

/** Return the bits of the nearest f16; of two, the even one. */
export function toHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | round(size * 2 ** 24);
  let exponent = Math.floor(Math.log2(size));
  if (2 ** exponent > size) exponent--;
  if (2 ** (exponent + 1) <= size) exponent++;
  return sign | (((exponent + 15) << 10) + round((size / 2 ** exponent - 1) * 1024));
}

/** Return the number that the bits of an f16 are. */
export function fromHalf(bits: number): number {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
