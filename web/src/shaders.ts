/** Shaders: fetched, compiled in the background, and found again by their name. */
import { cached, newUid } from "./element.js";
import { AbiError, KerngenError, refuse, ValidationError } from "./errors.js";
import type { Planned } from "./planner.js";
import { only, withDots } from "./wgsl.js";

/** Where a generated module has its shaders. */
export type ShaderUrl = (name: string) => URL;

/** A pipeline that is being made, or is there. */
export interface Compiled {
  readonly uid: number;
  readonly layout: GPUBindGroupLayout;
  /** What its uniform struct takes; 0 if it reads none. */
  readonly uniformBytes: number;
  /** Resolves when the pipeline is there, or what went wrong is. */
  readonly made: Promise<void>;
  pipeline?: GPUComputePipeline;
  error?: Error;
}

const visibility = 0x4; // GPUShaderStage.COMPUTE

/** Returns the pipeline of a dispatch; `uniformBytes` is 0 if it reads no uniforms. */
export type Shaders = (dispatch: Planned, url: ShaderUrl, uniformBytes: number) => Compiled;

/** Return what finds the shaders of a device, and makes what is missing. */
export const makeShaders = (
  device: GPUDevice,
  fetchText: (url: URL) => Promise<string>,
): Shaders => {
  const compiled = new Map<string, Compiled>();
  const layouts = new Map<string, GPUBindGroupLayout>();

  return ({ wgsl, access, constants = {} }, urlOf, uniformBytes) => {
    const [file, entryPoint = "main"] = wgsl.split(":");
    const url = urlOf(file!);
    const layout = cached(layouts, access + uniformBytes, () =>
      device.createBindGroupLayout({ entries: entriesOf(access, uniformBytes) }),
    );
    const make = async (): Promise<void> => {
      const text = only(await fetchText(url), entryPoint);
      const code = await withDots(text);
      made.pipeline = await device.createComputePipelineAsync({
        label: wgsl,
        layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: {
          module: device.createShaderModule({ label: wgsl, code }),
          entryPoint,
          constants,
        },
      });
    };
    const key = JSON.stringify([url, entryPoint, access, uniformBytes, constants]);
    const made: Compiled = cached(compiled, key, () => ({
      uid: newUid(),
      layout,
      uniformBytes,
      made: make().catch((error: unknown) => {
        // It is tried again with the next call: the network may be back.
        compiled.delete(key);
        made.error = refused(wgsl, error);
      }),
    }));
    return made;
  };
};

/** Return the bindings of a dispatch: its uniform struct, and tensors from 1 on. */
const entriesOf = (access: string, minBindingSize: number): GPUBindGroupLayoutEntry[] => {
  const entries = [...access].map((each, i): GPUBindGroupLayoutEntry => ({
    binding: i + 1,
    visibility,
    buffer: { type: each === "w" ? "storage" : "read-only-storage" },
  }));
  if (minBindingSize)
    entries.push({
      binding: 0,
      visibility,
      buffer: { type: "uniform", hasDynamicOffset: true, minBindingSize },
    });
  return entries;
};

const refused = (name: string, error: unknown): Error =>
  error instanceof KerngenError
    ? error
    : new ValidationError("compute", name, (error as Error).message ?? error);

/** Fetch the text of a shader, in a page. */
export const fetchShader = async (url: URL): Promise<string> => {
  try {
    const answer = await fetch(url);
    if (!answer.ok) throw answer.status;
    return await answer.text();
  } catch (error) {
    return refuse(AbiError, "fetch", url, error);
  }
};
