/** What a plan computes of lengths: by functions of BigInts, exactly, as in Python. */
import { LimitError, refuse } from "./errors.js";

/** Dims, scalars and facts of the adapter by name, of which whole numbers are BigInts. */
export type Values = Record<string, any>;

/** Return members by name as an object that has no others: a dim may be called `constructor`. */
export const bare = (members?: object): Values => ({ __proto__: null, ...members });

export type Size = (values: Values) => bigint;
export type Condition = (values: Values) => boolean;

/** Return lengths and scalars as sizes read them. */
export const valuesOf = (lengths: Readonly<Values>): Values => {
  const values = bare(lengths);
  for (const name in values) if (Number.isInteger(values[name])) values[name] = BigInt(values[name]);
  return values;
};

/** Return a size as a number; none is 0.  Beyond 2^53 numbers are not exact. */
export const evaluate = (size: Size | undefined, values: Values): number => {
  const value = size?.(values) ?? 0n;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : refuse(LimitError, "exact", value);
};
