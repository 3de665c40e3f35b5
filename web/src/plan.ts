/** Plans of kernels, as generated modules have them. */
import type { Condition, Size } from "./sizes.js";
import type { StructType } from "./struct.js";

/** The length of an axis: a dim by name, or a number. */
export type Axis = string | number;

/** The name of an element type, or the object of a struct. */
export type Element = string | StructType<any>;

export interface TensorPlan {
  readonly name: string;
  readonly element: Element;
  readonly axes: readonly Axis[];
  /** `temporary` tensors live between the dispatches of one call. */
  readonly access: "read" | "update" | "write" | "temporary";
  /** What an output is called in a result of several, if not by its name. */
  readonly field?: string;
}

/** An axis that subscripts read. */
export interface Check {
  readonly tensor: string;
  readonly axis: number;
  readonly extent: Axis;
}

/** One that is gathered from. */
export interface Gather extends Check {
  /** Whether it is empty, and something is read of it. */
  readonly empty: Condition;
}

/** One that a subscript must stay inside. */
export interface Range extends Check {
  /** Whether anything is read; if there is none, always. */
  readonly runs?: Condition;
  /** The subscript's source. */
  readonly text: string;
  readonly offset?: Size;
  readonly terms: readonly (readonly [extent: Axis, by: Size])[];
  readonly guarded?: true;
}

/** A condition on calls: its source, what it reads, and what its comparisons compute. */
export interface Requirement {
  readonly text: string;
  readonly holds: Condition;
  readonly reads: readonly string[];
  readonly sides: readonly (readonly [text: string, value: Size])[];
}

/** What few dispatches have. */
export interface More {
  readonly constants?: Readonly<Record<string, number>>;
  readonly trips?: Size;
  readonly terms?: Size;
  readonly uniform?: false;
}

/** One shader, what it binds and writes, as in `x y*`, and its number of workgroups. */
export type Dispatch = readonly [wgsl: string, bound: string, groups: Size, more?: More];

/** A case of a choice, and the steps that it runs. */
export interface Case {
  readonly when?: Condition;
  readonly bytes?: number;
  readonly invocations?: number;
  readonly subgroups?: true;
  readonly scratch?: readonly (readonly [name: string, length: Size])[];
  readonly body: readonly Step[];
}

/** The first of its cases that applies runs. */
export interface Choice {
  /** Those that it computes; a choice between shaders of one strategy has none. */
  readonly stages?: readonly string[];
  readonly cases: readonly Case[];
}

/** Dispatches that run `count` times, one round after the other; 0 times below 1. */
export interface Repeat {
  readonly count: Size;
  readonly body: readonly Dispatch[];
}

export type Step = Dispatch | Choice | Repeat;

/** Dims and scalars by name, as hosts read them. */
export type Given = Record<string, any>;

export interface KernelPlan {
  /** Where its source is. */
  readonly origin: string;
  readonly dims: readonly string[];
  readonly inputs: readonly TensorPlan[];
  readonly outputs: readonly TensorPlan[];
  readonly temporaries: readonly TensorPlan[];
  readonly scalars: readonly (readonly [name: string, type: Element, initial?: unknown])[];
  /** The scalars that conditions, lengths and checks read. */
  readonly guards: readonly string[];
  /** What the module computes before lengths are known. */
  readonly computed: readonly (readonly [string, (given: Given) => number | bigint])[];
  readonly requires: readonly Requirement[];
  /** Computed lengths, with their sources. */
  readonly lengths: readonly (readonly [name: string, text: string, value: Size])[];
  readonly ranges: readonly Range[];
  readonly gathers: readonly Gather[];
  /** What has f16 numbers, and how: `["x", "has f16 elements"]`. */
  readonly halves: readonly (readonly [name: string, what: string])[];
  /** Whether a gradient is 0, as all that it adds up elements of is empty. */
  readonly zero?: Condition;
  readonly uniform?: StructType<any>;
  /** Return the values that follow dims and scalars in the uniform struct. */
  readonly hosts?: (given: Given) => (number | bigint)[];
  readonly body: readonly Step[];
}
