/** What generated modules and their users import; errors get their texts when they need them. */
export { Context, open, type Options } from "./context.js";
export type {
  Leaf,
  Mat2x2,
  Mat2x3,
  Mat2x4,
  Mat3x2,
  Mat3x3,
  Mat3x4,
  Mat4x2,
  Mat4x3,
  Mat4x4,
  Vec2,
  Vec3,
  Vec4,
} from "./element.js";
export {
  AbiError,
  AliasError,
  ArgumentError,
  ContextError,
  DeviceLost,
  DtypeError,
  FeatureError,
  KerngenError,
  LimitError,
  NoAdapter,
  OutOfMemoryError,
  ShapeError,
  StateError,
  UniformRangeError,
  ValidationError,
} from "./errors.js";
export { module } from "./kernel.js";
export type { Call, KernelFunction } from "./launch.js";
export { struct, StructType } from "./struct.js";
export { Tensor, type Matrix, type Scalar, type Tensor3, type Tensor4, type Vector } from "./tensor.js";
