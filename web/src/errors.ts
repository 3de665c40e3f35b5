/**
 * What can go wrong in a call: each error has a text for its user, as in Python.
 *
 * The texts are a module of their own, so that production need not load them: an error is
 * thrown by the name of its text, and with what that speaks of.
 */
import type { TEXTS } from "./messages.js";

type Texts = typeof TEXTS;

let texts: Record<string, (...given: any[]) => string> | undefined;

export const setTexts = (all: typeof texts): void => {
  texts = all;
};

/** Whether a value is a number, a name or the like, or a kernel, which shows its place. */
const isShort = (x: any): boolean => x?.args || Object(x) !== x;

/** The root of everything that the runtime throws on purpose. */
export class KerngenError extends Error {
  constructor(text: string, ...given: readonly unknown[]) {
    // Of what users give, not every object becomes a text.
    super(texts ? texts[text]!(...given) : `${text} (${given.flat().filter(isShort)})`);
    // In production the first error's text comes a moment later, for who reports it.
    if (!texts)
      import("./messages.js").then(
        ({ TEXTS }) => {
          setTexts(TEXTS);
          this.message = texts![text]!(...given);
        },
        () => undefined,
      );
  }
}

/** Throw an error of a class, with one of the texts and what it speaks of. */
export function refuse<K extends keyof Texts>(
  kind: typeof KerngenError,
  text: K,
  ...given: Parameters<Texts[K]>
): never {
  throw new kind(text, ...given);
}

// A minifier renames classes, but not what they say of themselves.
const named = (name: string) =>
  class extends KerngenError {
    override get name(): string {
      return name;
    }
  };

/** A rank or a length does not fit. */
export const ShapeError = named("ShapeError");
export type ShapeError = KerngenError;
/** An argument has the wrong type or element type. */
export const DtypeError = named("DtypeError");
export type DtypeError = KerngenError;
/** A tensor that a kernel writes overlaps another of its arguments. */
export const AliasError = named("AliasError");
export type AliasError = KerngenError;
/** An argument has a value that is not allowed. */
export const ArgumentError = named("ArgumentError");
export type ArgumentError = KerngenError;
/** The adapter's limits do not allow the call. */
export const LimitError = named("LimitError");
export type LimitError = KerngenError;
/** The device lacks a feature that the call needs. */
export const FeatureError = named("FeatureError");
export type FeatureError = KerngenError;
/** Arguments of different contexts, a closed context, or none at all. */
export const ContextError = named("ContextError");
export type ContextError = KerngenError;
/** A call comes too late: a tensor was freed. */
export const StateError = named("StateError");
export type StateError = KerngenError;
/** A number does not fit the type of its scalar, field or element. */
export const UniformRangeError = named("UniformRangeError");
export type UniformRangeError = KerngenError;
/** The adapter has no memory left for a buffer. */
export const OutOfMemoryError = named("OutOfMemoryError");
export type OutOfMemoryError = KerngenError;
/** The device is gone: open a new context. */
export const DeviceLost = named("DeviceLost");
export type DeviceLost = KerngenError;
/** There is no WebGPU here, or no adapter. */
export const NoAdapter = named("NoAdapter");
export type NoAdapter = KerngenError;
/** The adapter refused a shader or recorded work, in its own words. */
export const ValidationError = named("ValidationError");
export type ValidationError = KerngenError;
/** A generated module and this runtime have different versions, or a shader is missing. */
export const AbiError = named("AbiError");
export type AbiError = KerngenError;
