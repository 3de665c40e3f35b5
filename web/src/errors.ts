/** What can go wrong in a call: each error has a text for its user, as in Python. */

/** The root of everything that the runtime throws on purpose. */
export class KerngenError extends Error {}

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
