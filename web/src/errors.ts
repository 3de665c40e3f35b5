/**
 * What can go wrong in a call: each error has a text for its user, as in Python.
 *
 * The texts are a module of their own, so that production need not load them: an error is
 * thrown by the name of its text, and with what that speaks of.
 */
import type { TEXTS } from "./messages.js";

type Texts = typeof TEXTS;

let texts: Record<string, (...given: any[]) => string> | undefined;

export function setTexts(all: typeof texts): void {
  texts = all;
}

/** The root of everything that the runtime throws on purpose. */
export class KerngenError extends Error {
  constructor(text: string, ...given: readonly unknown[]) {
    super(texts ? texts[text]!(...given) : `${text} (${given})`);
    // In production the text comes a moment later, for who reports the error.
    if (!texts)
      import("./messages.js").then(
        ({ TEXTS }) => (this.message = (TEXTS as NonNullable<typeof texts>)[text]!(...given)),
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
    override readonly name = name;
  };

/** A rank or a length does not fit. */
export class ShapeError extends named("ShapeError") {}
/** An argument has the wrong type or element type. */
export class DtypeError extends named("DtypeError") {}
/** A tensor that a kernel writes overlaps another of its arguments. */
export class AliasError extends named("AliasError") {}
/** An argument has a value that is not allowed. */
export class ArgumentError extends named("ArgumentError") {}
/** The adapter's limits do not allow the call. */
export class LimitError extends named("LimitError") {}
/** The device lacks a feature that the call needs. */
export class FeatureError extends named("FeatureError") {}
/** Arguments of different contexts, a closed context, or none at all. */
export class ContextError extends named("ContextError") {}
/** A call comes too late: a tensor was freed. */
export class StateError extends named("StateError") {}
/** A number does not fit the type of its scalar, field or element. */
export class UniformRangeError extends named("UniformRangeError") {}
/** The adapter has no memory left for a buffer. */
export class OutOfMemoryError extends named("OutOfMemoryError") {}
/** The device is gone: open a new context. */
export class DeviceLost extends named("DeviceLost") {}
/** There is no WebGPU here, or no adapter. */
export class NoAdapter extends named("NoAdapter") {}
/** The adapter refused a shader or recorded work, in its own words. */
export class ValidationError extends named("ValidationError") {}
/** A generated module and this runtime have different versions, or a shader is missing. */
export class AbiError extends named("AbiError") {}
