/** Kernels as generated modules describe them. */
import { AbiError, ArgumentError, refuse } from "./errors.js";
import type { Lengths } from "./check.js";
import { launch } from "./launch.js";
import type { Given, KernelPlan, TensorPlan } from "./plan.js";
import type { ShaderUrl } from "./shaders.js";
import { fit } from "./struct.js";

/** The version of what generated modules call, and of their plans. */
const ABI = 3;

/** One kernel. */
export interface Kernel extends KernelPlan {
  readonly name: string;
  readonly shader: ShaderUrl;
  /** Its inputs, and its outputs. */
  readonly args: readonly TensorPlan[];
  /** Return its name with its place in the source, as errors begin. */
  readonly toString: () => string;
}

const NONE: readonly never[] = [];
/** What a plan has not, where a module leaves it out. */
const EMPTY = {
  dims: NONE,
  inputs: NONE,
  outputs: NONE,
  temporaries: NONE,
  scalars: NONE,
  guards: NONE,
  computed: NONE,
  requires: NONE,
  lengths: NONE,
  ranges: NONE,
  gathers: NONE,
  halves: NONE,
};

/** Return a kernel of what a module has of it. */
export const makeKernel = (
  name: string,
  shader: ShaderUrl,
  own: Omit<KernelPlan, keyof typeof EMPTY> & Partial<KernelPlan>,
): Kernel => {
  const plan: KernelPlan = { ...EMPTY, ...own };
  const args = [...plan.inputs, ...plan.outputs];
  return { ...plan, name, shader, args, toString: () => `${name} (${plan.origin})` };
};

/** Refuse a name that is none of those known. */
export const checkNames = (
  kernel: Kernel,
  what: "option" | "output",
  given: Given,
  known: readonly string[],
): void => {
  for (const name in given)
    if (!known.includes(name)) refuse(ArgumentError, "name", kernel, what, name, known);
};

/** Return the scalars of a call in order, checked. */
export const scalarsOf = (kernel: Kernel, options: Given): unknown[] => {
  const { scalars, outputs } = kernel;
  const out = outputs.length ? ["out"] : [];
  checkNames(kernel, "option", options, [...scalars.map(([name]) => name), ...out, "ctx"]);
  return scalars.map(([name, type, initial]) => {
    const { [name]: value = initial } = options;
    fit([name, type, 0], value, [kernel, name]);
    return value;
  });
};

/** Return scalars by name. */
export const byName = ({ scalars }: Kernel, values: readonly unknown[]): Given =>
  Object.fromEntries(scalars.map(([name], i) => [name, values[i]]));

/** Return what guards read of scalars: `rate`, `ball.mass`. */
export const guardsOf = (kernel: Kernel, values: readonly unknown[]): Lengths =>
  Object.fromEntries(
    kernel.guards.map((name) => [
      name,
      name.split(".").reduce<any>((part, step) => part[step], byName(kernel, values)),
    ]),
  );

/** Begin a generated module; its kernels are made when they are first called. */
export const module = (abi: number, shader: ShaderUrl) => {
  if (abi !== ABI) refuse(AbiError, "abi", abi, ABI);
  return {
    /** Return the function that calls a kernel. */
    kernel(name: string, plan: () => Parameters<typeof makeKernel>[2]): any {
      let known: Kernel | undefined;
      const kernel = (): Kernel => (known ??= makeKernel(name, shader, plan()));
      const call = (...given: unknown[]): unknown => launch(kernel(), given);
      return Object.defineProperties(call, { kernel: { get: kernel }, name: { value: name } });
    },
  };
};
