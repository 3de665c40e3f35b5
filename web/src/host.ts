/** Arithmetic of the host: integers are BigInts, exact; division by zero is as in WGSL. */

const quotient = (a: bigint, b: bigint): bigint => (b ? a / b : a);
const sizeOf = (x: bigint): bigint => (x < 0n ? -x : x);

/** The quotient rounded toward zero; x / 0 is x. */
export const div = quotient;
/** The remainder of `div`, signed like the numerator; x % 0 is 0. */
export const rem = (a: bigint, b: bigint): bigint => (b ? a % b : 0n);
/** The quotient rounded down; x / 0 is x. */
export const floorDiv = (a: bigint, b: bigint): bigint =>
  b ? a / b - BigInt(a % b !== 0n && a < 0n !== b < 0n) : a;
/** The remainder of `floorDiv`, signed like the denominator; x mod 0 is 0. */
export const mod = (a: bigint, b: bigint): bigint => (b ? a - floorDiv(a, b) * b : 0n);
export const shiftLeft = (a: bigint, by: bigint): bigint => a << (by & 31n);
export const shiftRight = (a: bigint, by: bigint): bigint => a >> (by & 31n);
export const abs = sizeOf;
export const min = <T extends bigint | number>(a: T, b: T): T => (b < a ? b : a);
export const max = <T extends bigint | number>(a: T, b: T): T => (b > a ? b : a);

const truncated = (x: number, least: number, most: number): bigint =>
  BigInt(Number.isNaN(x) ? 0 : Math.trunc(Math.min(Math.max(x, least), most)));

/** A float as i32: it saturates at the nearest f32 within. */
export const toI32 = (x: number): bigint => truncated(x, -(2 ** 31), 2147483520);
/** A float as u32: it saturates at the nearest f32 within. */
export const toU32 = (x: number): bigint => truncated(x, 0, 4294967040);

/** The nearest integer; of two, the even one. */
export const round = (x: number): number => {
  const up = Math.round(x);
  return up - x === 0.5 && up % 2 ? up - 1 : up;
};

/** A power as IEEE 754 has it: 1 to any power is 1. */
export const pow = (a: number, b: number): number =>
  a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b;

/** The functions that sizes of plans call, by name. */
export const FUNCTIONS: Record<string, (a: bigint, b: bigint) => bigint> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": div,
  "%": rem,
  abs,
  bit_and: (a, b) => a & b,
  bit_or: (a, b) => a | b,
  bit_xor: (a, b) => a ^ b,
  ceil_div: (a, b) => -floorDiv(-a, b),
  floor_div: floorDiv,
  max,
  min,
  mod,
  shift_left: shiftLeft,
  shift_right: shiftRight,
  wrap_i32: (a) => BigInt.asIntN(32, a),
  wrap_u32: (a) => BigInt.asUintN(32, a),
};
