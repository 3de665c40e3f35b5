/** Element types of tensors: numbers, vectors and matrices by WGSL's names, and structs. */
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

/** The kind of a number: how memory keeps it, and JavaScript. */
export interface Kind {
  readonly name: string;
  readonly bytes: number;
  readonly array: typeof Float32Array | typeof Int32Array | typeof Uint32Array;
  readonly get: (this: DataView, at: number, isLittle: boolean) => number;
  readonly set: (this: DataView, at: number, value: number, isLittle: boolean) => void;
  readonly least: number;
  readonly most: number;
  /** What the magnitude of a float must be below; 0 of integers. */
  readonly limit: number;
}

const F32_MOST = (2 - 2 ** -23) * 2 ** 127;
const KINDS: Record<string, Kind> = {};
for (const [name, bytes, array, method, least, most, limit = 0] of [
  ["f32", 4, Float32Array, "Float32", -F32_MOST, F32_MOST, F32_MOST + 2 ** 103],
  ["f16", 2, Float32Array, "Uint16", -65504, 65504, 65520],
  ["i32", 4, Int32Array, "Int32", -(2 ** 31), 2 ** 31 - 1],
  ["u32", 4, Uint32Array, "Uint32", 0, 2 ** 32 - 1],
  ["i8", 1, Int32Array, "Int8", -128, 127],
  ["u8", 1, Uint32Array, "Uint8", 0, 255],
  ["i4", 0.5, Int32Array, "Uint8", -8, 7],
  ["u4", 0.5, Uint32Array, "Uint8", 0, 15],
] as const) {
  const { [`get${method}` as const]: get, [`set${method}` as const]: set } = DataView.prototype;
  KINDS[name] = { name, bytes, array, get, set, least, most, limit };
}
/** Return the element type that the class of an array implies, or the name of that class. */
export const impliedBy = ({ constructor }: object): string =>
  Object.values(KINDS).find(({ array }) => array === constructor)?.name ?? constructor.name;

const LETTERS: Record<string, string> = { f: "f32", h: "f16", i: "i32", u: "u32" };

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
  const kind = KINDS[scalar ?? LETTERS[of ?? held!]!]!;
  const shape = [columns, rows ?? width].filter(Boolean).map(Number);
  const lanes = shape.at(-1) ?? 1;
  const stride = kind.bytes * (lanes === 3 ? 4 : lanes);
  return { name, kind, shape, stride, size: stride * Number(columns ?? 1) };
}

export const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** Return how many bytes elements take; two of 4 bits share one. */
export const bytesOf = (type: { readonly size: number }, count: number): number =>
  Math.ceil(type.size * count);

/** Write a number that is in range; of 4 bits, at a half of a byte that is 0. */
export function put(view: DataView, at: number, { name, bytes, set }: Kind, value: number): void {
  const byte = Math.floor(at);
  // An engine's NaN may have any bits.
  if (name === "f32" && Number.isNaN(value)) view.setUint32(at, 0x7fc00000, true);
  else if (bytes < 1)
    view.setUint8(byte, view.getUint8(byte) | ((value & 15) << (at > byte ? 4 : 0)));
  else set.call(view, at, name === "f16" ? toHalf(value) : value, true);
}

/** Read a number. */
export function take(view: DataView, at: number, { name, bytes, get }: Kind): number {
  const byte = Math.floor(at);
  const value = get.call(view, byte, true);
  if (name === "f16") return fromHalf(value);
  if (bytes >= 1) return value;
  const half = (value >> (at > byte ? 4 : 0)) & 15;
  return name === "i4" && half > 7 ? half - 16 : half;
}

/** The nearest integer of a number above 0; of two, the even one. */
function round(x: number): number {
  const up = Math.round(x);
  return up - x === 0.5 && up % 2 ? up - 1 : up;
}

/** Return the bits of the nearest f16; of two, the even one. */
export function toHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (!(size < 65520)) return Number.isNaN(value) ? 0x7e00 : sign | 0x7c00;
  // Where the logarithm is one off, the size rounds to that power of two.
  const exponent = Math.max(Math.floor(Math.log2(size)), -14);
  return sign | (((exponent + 14) << 10) + round(size * 2 ** (10 - exponent)));
}

/** Return the number that the bits of an f16 are. */
export function fromHalf(bits: number): number {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? fraction + 1024 : fraction) * 2 ** (Math.max(exponent, 1) - 25);
}
