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
  readonly bits: number;
  readonly array: typeof Float32Array | typeof Int32Array | typeof Uint32Array;
  /** The range of an integer. */
  readonly least: number;
  readonly most: number;
  /** What the magnitude of a float must be below; 0 of integers. */
  readonly limit: number;
}

const ARRAYS: Record<string, Kind["array"]> = {
  f: Float32Array,
  i: Int32Array,
  u: Uint32Array,
};
/** What rounds to infinity: half of a last place above the greatest number. */
const LIMITS: Record<string, number> = { f32: 2 ** 128 - 2 ** 103, f16: 65520 };

/** Return the element type that the class of an array implies; none of other values. */
export const impliedBy = (values: object): string | undefined => {
  for (const letter in ARRAYS) if (values instanceof ARRAYS[letter]!) return `${letter}32`;
  return undefined;
};

/**
 * A leaf as memory keeps it: vectors lie `stride` bytes apart, elements `size`; half a byte,
 * where two share one.
 */
export interface LeafType {
  readonly name: string;
  /** What call plans are found by: a name that no other type has. */
  readonly key: string;
  readonly kind: Kind;
  /** Of a value: none of a scalar, `[columns, rows]` of a matrix. */
  readonly shape: readonly number[];
  /** The bytes between its numbers, along each axis of the shape. */
  readonly strides: readonly number[];
  /** How many numbers a vector has, or a column; 1 of a number. */
  readonly lanes: number;
  readonly stride: number;
  readonly size: number;
}

/** Beyond so many entries, caches begin again. */
const MOST_CACHED = 4096;

interface Cache<K, V> {
  readonly size?: number;
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
  clear?(): void;
}

/** Return what a map has for a key; what it lacks is made. */
export const cached = <K, V extends {}>(map: Cache<K, V>, key: K, make: () => V): V => {
  let found = map.get(key);
  if (!found) {
    found = make();
    if (map.size! >= MOST_CACHED) map.clear!();
    map.set(key, found);
  }
  return found;
};

let uids = 0;
/** Return a number that nothing else of the runtime has. */
export const newUid = (): number => ++uids;

const LEAVES = new Map<string, LeafType>();
const NAME = /^(?:([fiu]32|f16|[iu][48])|(?:vec|mat([234])x(?=.[fh]))([234])([fhiu]))$/;

/** Return the type of a leaf's name; none if it is no such name. */
export const leafType = (name: string): LeafType | undefined => {
  const match = NAME.exec(name);
  return match ? cached(LEAVES, name, () => makeLeaf(match)) : undefined;
};

const makeLeaf = ([name, scalar, columns, rows, letter]: readonly string[]): LeafType => {
  const number = scalar ?? (letter === "h" ? "f16" : `${letter}32`);
  const [first, bits] = [number[0]!, Number(number.slice(1))];
  const least = first === "i" ? -(2 ** (bits - 1)) : 0;
  const kind = {
    name: number,
    bits,
    array: ARRAYS[first]!,
    least,
    most: least + 2 ** bits - 1,
    limit: LIMITS[number] ?? 0,
  };
  const shape = [columns, rows].filter(Boolean).map(Number);
  const lanes = Number(rows ?? 1);
  const stride = (bits / 8) * (lanes === 3 ? 4 : lanes);
  const strides = [stride, bits / 8].slice(2 - shape.length);
  return { name: name!, key: name!, kind, lanes, shape, strides, stride, size: stride * Number(columns ?? 1) };
};

/** The longest axis, and the most turns of a loop: indices and counters are i32. */
export const LONGEST = 2 ** 31 - 1;

export const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

export const roundUp = (size: number, to: number): number => Math.ceil(size / to) * to;

/** Return how many bytes elements take; two of 4 bits share one. */
export const bytesOf = (type: { readonly size: number }, count: number): number =>
  Math.ceil(type.size * count);

/** Write a number that is in range; of 4 bits, at a half of a byte that is 0. */
export const put = (view: DataView, at: number, { name, bits }: Kind, value: number): void => {
  const byte = Math.floor(at);
  // An engine's NaN, which alone equals no number, may have any bits.
  if (name === "f32" && value === value) view.setFloat32(at, value, true);
  else if (bits > 16) view.setUint32(at, value === value ? value : 0x7fc00000, true);
  else if (bits > 8) view.setUint16(at, toHalf(value), true);
  else if (bits > 4) view.setUint8(at, value);
  else view.setUint8(byte, view.getUint8(byte) | ((value & 15) << (at > byte ? 4 : 0)));
};

/** Read a number. */
export const take = (view: DataView, at: number, { name, bits, least }: Kind): number => {
  if (name === "f32") return view.getFloat32(at, true);
  if (name === "f16") return fromHalf(view.getUint16(at, true));
  const byte = Math.floor(at);
  const word = bits > 8 ? view.getUint32(at, true) : view.getUint8(byte) >> (at > byte ? 4 : 0);
  const [up, shift] = [word << (32 - bits), 32 - bits];
  return least ? up >> shift : up >>> shift;
};

/** Return the bits of the nearest f16; of two, the even one. */
export const toHalf = (value: number): number => {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (!(size < 65520)) return Number.isNaN(value) ? 0x7e00 : sign | 0x7c00;
  // Where the logarithm is one off, the size rounds to that power of two.
  const exponent = Math.max(Math.floor(Math.log2(size)), -14);
  // A sum beyond 2^52 has no fraction: it is rounded, of two neighbours to the even one.
  return sign | (((exponent + 14) << 10) + (size * 2 ** (10 - exponent) + 2 ** 52 - 2 ** 52));
};

/** Return the number that the bits of an f16 are. */
export const fromHalf = (bits: number): number => {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const size = exponent === 31 ? (fraction ? NaN : Infinity) : fraction + (exponent && 1024);
  return (bits & 0x8000 ? -size : size) * 2 ** (Math.max(exponent, 1) - 25);
};
