/** What a plan computes of lengths: by functions of BigInts, exactly, as in Python. */
import { LimitError, refuse } from "./errors.js";

/** Dims, scalars and facts of the adapter by name, of which whole numbers are BigInts. */
export type Values = Record<string, any>;
export type Size = (values: Values) => bigint;
export type Condition = (values: Values) => boolean;

/** Return lengths and scalars as sizes read them. */
export const valuesOf = (lengths: Record<string, unknown>): Values =>
  Object.fromEntries(
    Object.entries(lengths).map(([name, x]) => [name, Number.isInteger(x) ? BigInt(x as number) : x]),
  );

/** Return a size as a number; none is 0.  Beyond 2^53 numbers are not exact. */
export const evaluate = (size: Size | undefined, values: Values): number => {
  const value = size?.(values) ?? 0n;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : refuse(LimitError, "exact", value);
};
