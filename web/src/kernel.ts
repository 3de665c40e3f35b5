/** Kernels as generated modules describe them: a plan, and what the module computes. */
import { AbiError, ArgumentError } from "./errors.js";
import type { Lengths } from "./check.js";
import { kernelTexts, readKernel, type KernelPlan, type TensorPlan } from "./plan.js";
import type { ShaderUrl } from "./shaders.js";
import { launch, type KernelFunction } from "./launch.js";
import { leafType } from "./element.js";
import { fit, StructType, type ElementType } from "./struct.js";

/** The version of what generated modules call. */
const ABI = 1;

/** Dims and scalars by name, as hosts read them. */
export type Given = Record<string, any>;

/** What a module computes for a kernel, and has of it beside the plan. */
export interface Parts {
  readonly uniform?: StructType<any>;
  /** Return the values that follow dims and scalars in the uniform struct. */
  readonly hosts?: (given: Given) => (number | bigint)[];
  readonly computed?: (given: Given) => (number | bigint)[];
  readonly structs?: Record<string, StructType<any>>;
  /** The outputs' names, where they are not those of the plan. */
  readonly outputs?: readonly string[];
  readonly defaults?: Record<string, unknown>;
}

/** One kernel. */
export class Kernel {
  readonly scalars: readonly (readonly [string, ElementType])[];
  readonly outputs: readonly string[];
  readonly computed: Parts["computed"];

  constructor(
    readonly plan: KernelPlan,
    readonly shader: ShaderUrl,
    readonly parts: Parts,
  ) {
    this.scalars = plan.scalars.map(([name, type]) => [name, this.type(type)]);
    this.outputs = parts.outputs ?? plan.outputs.map((each) => each.name);
    this.computed = parts.computed;
  }

  /** Return the element type of a tensor. */
  element(spec: TensorPlan): ElementType {
    return this.type(spec.element);
  }

  /** Return the scalars of a call in order, checked. */
  scalarsOf(options: Given): unknown[] {
    const known = [...this.scalars.map(([name]) => name), "out", "ctx"];
    for (const name in options)
      if (!known.includes(name))
        throw new ArgumentError(
          `${this.plan.place}: there is no option '${name}'; there are ${known.join(", ")}.`,
        );
    return this.scalars.map(([name, type]) => {
      const value = options[name] ?? this.parts.defaults?.[name];
      fit(type, [], value, (path) => `${this.plan.place}: scalar argument '${name}${path}'`);
      return value;
    });
  }

  /** Return the scalars that guards read, by name. */
  guards(scalars: readonly unknown[]): Lengths {
    const { guards, scalars: specs } = this.plan;
    return Object.fromEntries(
      guards.map((name) => {
        const [first, ...path] = name.split(".");
        const value = scalars[specs.findIndex(([own]) => own === first)];
        return [name, path.reduce((part, step) => (part as Given)[step], value) as number];
      }),
    );
  }

  private type(name: string): ElementType {
    const type = leafType(name) ?? this.parts.structs?.[name];
    if (!type) throw new AbiError(`${this.plan.place}: there is no element type '${name}'.`);
    return type;
  }
}

/** The kernels of a generated module. */
export class Module {
  private readonly texts: Map<string, string>;

  constructor(
    private readonly shader: ShaderUrl,
    plan: string,
  ) {
    this.texts = kernelTexts(plan);
  }

  /** Return the function that calls a kernel; its plan is read when it is first called. */
  kernel(name: string, parts: Parts = {}): any {
    let known: Kernel | undefined;
    const kernel = (): Kernel =>
      (known ??= new Kernel(readKernel(this.texts.get(name)!), this.shader, parts));
    const call = (...given: unknown[]): unknown => launch(kernel(), given);
    Object.defineProperty(call, "kernel", { get: kernel });
    return Object.defineProperty(call, "name", { value: name }) as KernelFunction;
  }
}

/** Begin a generated module. */
export function module(abi: number, shader: ShaderUrl, plan: string): Module {
  if (abi !== ABI)
    throw new AbiError(
      `A generated module is for version ${abi} of the npm package 'kerngen', and this one ` +
        `is ${ABI}. Run 'kerngen build' with the kerngen that the package belongs to.`,
    );
  return new Module(shader, plan);
}
