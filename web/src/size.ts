/**
 * Sizes and conditions of plans: `m * min(ceil_div(n, 4096), 1024)`, `n % 4 == 0`.
 *
 * They are read to trees, and evaluated in BigInts: exactly, as in Python.
 */
import { LimitError } from "./errors.js";
import { FUNCTIONS } from "./host.js";

/** A number, a name, or an operation with its operands. */
export type Size = bigint | string | readonly [string, ...Size[]];
/** Dims, scalars and facts of the adapter, by name. */
export type Values = Record<string, unknown>;

const TOKEN = /\s*(?:(-?\d+)(?![\w.])|([A-Za-z_][\w.]*)|(==|!=|<=|>=|[-+*/%<>(),]))/y;
const LEVELS: Record<string, number> = { "+": 1, "-": 1, "*": 2, "/": 2, "%": 2 };
const COMPARISONS: Record<string, (a: bigint, b: bigint) => boolean> = {
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

/** Read a text; `lets` are sizes that it may name. */
export function parse(text: string, lets: Record<string, Size> = {}): Size {
  let at = 0;
  let [number, name, op] = ["", "", ""];
  const next = (): void => {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    [number, name, op] = [match?.[1] ?? "", match?.[2] ?? "", match?.[3] ?? ""];
    at = match ? TOKEN.lastIndex : text.length;
  };
  const logic = (): Size => {
    let left = comparison();
    while (name === "and" || name === "or") {
      const joint = name;
      next();
      left = [joint, left, comparison()];
    }
    return left;
  };
  const comparison = (): Size => {
    const left = expression(1);
    if (!(op in COMPARISONS)) return left;
    const compare = op;
    next();
    return [compare, left, expression(1)];
  };
  const expression = (level: number): Size => {
    if (level > 2) return atom();
    let left = expression(level + 1);
    while (LEVELS[op] === level) {
      const infix = op;
      next();
      left = [infix, left, expression(level + 1)];
    }
    return left;
  };
  const atom = (): Size => {
    const [digits, word] = [number, name];
    next();
    if (digits) return BigInt(digits);
    if (word && op !== "(") return lets[word] ?? word;
    if (word) next();
    const parts = [logic()];
    while (op === ",") {
      next();
      parts.push(logic());
    }
    next();
    return word ? [word, ...parts] : parts[0]!;
  };
  next();
  return logic();
}

/** Return what a size is for a call, exactly. */
export function exact(size: Size, values: Values): bigint {
  if (typeof size === "bigint") return size;
  if (typeof size === "string") return BigInt(values[size] as number);
  const [op, a, b, c] = size;
  if (op === "if") return exact(holds(a!, values) ? b! : c!, values);
  return FUNCTIONS[op]!(exact(a!, values), b === undefined ? 0n : exact(b, values));
}

/** Return a size as a number; throw beyond 2^53, where numbers are not exact. */
export function evaluate(size: Size, values: Values): number {
  const value = exact(size, values);
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new LimitError(`${show(size)} is ${value}; expected at most 2^53.`);
}

/** Return whether a condition holds for a call. */
export function holds(guard: Size, values: Values): boolean {
  if (typeof guard === "string") return guard === "true";
  const [op, a, b] = guard as [string, Size, Size];
  if (op === "and") return holds(a, values) && holds(b, values);
  if (op === "or") return holds(a, values) || holds(b, values);
  if (op === "not") return !holds(a, values);
  return COMPARISONS[op]!(exact(a, values), exact(b, values));
}

/** Yield the names that a size reads. */
export function* names(size: Size): Generator<string> {
  if (typeof size === "string") yield size;
  else if (typeof size === "object") for (const each of size.slice(1)) yield* names(each);
}

/** Return the text of a size, with some names as numbers. */
export function show(size: Size, values: Values = {}, level = 0): string {
  if (typeof size !== "object") return `${values[size as string] ?? size}`;
  const [op, ...parts] = size;
  const own = LEVELS[op];
  if (!own) return `${op}(${parts.map((each) => show(each, values)).join(", ")})`;
  const text = parts.map((each, i) => show(each, values, own + Math.min(i, 1))).join(` ${op} `);
  return own < level ? `(${text})` : text;
}

/** Return the numbers that decide a condition: `d is 12, 12 % 8 is 4`. */
export function figures(guard: Size, values: Values): string {
  const known: Values = {};
  for (const name of names(guard)) known[name] = values[name];
  const texts = Object.keys(known).map((name) => `${name} is ${known[name]}`);
  const visit = (part: Size): void => {
    if (typeof part !== "object") return;
    if (part[0] in COMPARISONS) {
      for (const side of part.slice(1) as Size[])
        if (typeof side === "object")
          texts.push(`${show(side, known)} is ${exact(side, values)}`);
    } else (part.slice(1) as Size[]).forEach(visit);
  };
  visit(guard);
  return [...new Set(texts)].join(", ");
}
