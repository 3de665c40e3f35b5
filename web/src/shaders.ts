/** Shaders: fetched, compiled in the background, and found again by their name. */
import { AbiError, KerngenError, refuse, ValidationError } from "./errors.js";
import type { Planned } from "./planner.js";
import { only, withDots } from "./wgsl.js";

/** Where a generated module has its shaders. */
export type ShaderUrl = (name: string) => URL;

/** A pipeline that is being made, or is there. */
export interface Compiled {
  readonly uid: number;
  readonly layout: GPUBindGroupLayout;
  readonly usesUniform: boolean;
  readonly uniformBytes: number;
  /** Resolves when the pipeline is there, or what went wrong is. */
  readonly made: Promise<void>;
  pipeline?: GPUComputePipeline;
  error?: Error;
}

const COMPUTE = 0x4; // GPUShaderStage.COMPUTE

/** The shaders of a context. */
export class Shaders {
  private readonly compiled = new Map<string, Compiled>();
  private made = 0;
  private readonly layouts = new Map<string, GPUBindGroupLayout>();

  constructor(
    private readonly device: GPUDevice,
    private readonly fetchText: (url: URL) => Promise<string>,
  ) {}

  /** Return the pipeline of a dispatch; `uniformBytes` is 0 if it reads no uniforms. */
  get(dispatch: Planned, url: ShaderUrl, uniformBytes: number): Compiled {
    const { access, constants = {} } = dispatch;
    const [file, entry = "main"] = dispatch.wgsl.split(":");
    const place = url(file!);
    const given = JSON.stringify(constants);
    const key = [place.href, entry, access, uniformBytes, given].join(" ");
    const known = this.compiled.get(key);
    if (known) return known;
    const made: Compiled = {
      uid: ++this.made,
      layout: this.layout(access, uniformBytes),
      usesUniform: uniformBytes > 0,
      uniformBytes,
      made: this.make(dispatch, place, entry, () => made).catch((error: unknown) => {
        // It is tried again with the next call: the network may be back.
        this.compiled.delete(key);
        made.error = refused(dispatch.wgsl, error);
      }),
    };
    this.compiled.set(key, made);
    return made;
  }

  private async make(
    dispatch: Planned,
    url: URL,
    entryPoint: string,
    result: () => Compiled,
  ): Promise<void> {
    const text = only(await this.fetchText(url), entryPoint);
    const code = withDots(text, navigator.gpu.wgslLanguageFeatures);
    const { layout } = result();
    result().pipeline = await this.device.createComputePipelineAsync({
      label: dispatch.wgsl,
      layout: this.device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: {
        module: this.device.createShaderModule({ label: dispatch.wgsl, code }),
        entryPoint,
        constants: dispatch.constants ?? {},
      },
    });
  }

  private layout(access: string, uniformBytes: number): GPUBindGroupLayout {
    const key = `${access} ${uniformBytes}`;
    let layout = this.layouts.get(key);
    if (!layout) {
      const entries: GPUBindGroupLayoutEntry[] = [...access].map((each, i) => ({
        binding: i + 1,
        visibility: COMPUTE,
        buffer: { type: each === "w" ? "storage" : "read-only-storage" },
      }));
      if (uniformBytes)
        entries.unshift({
          binding: 0,
          visibility: COMPUTE,
          buffer: { type: "uniform", hasDynamicOffset: true, minBindingSize: uniformBytes },
        });
      layout = this.device.createBindGroupLayout({ entries });
      this.layouts.set(key, layout);
    }
    return layout;
  }
}

function refused(name: string, error: unknown): Error {
  if (error instanceof KerngenError) return error;
  return new ValidationError("shader", [name, (error as Error).message ?? `${error}`]);
}

/** Fetch the text of a shader, in a page. */
export async function fetchShader(url: URL): Promise<string> {
  const answer = await fetch(url).catch((error: Error) => error);
  if (answer instanceof Response && answer.ok) return answer.text();
  const why = answer instanceof Response ? `${answer.status}` : answer.message;
  return refuse(AbiError, "fetch", url.href, why);
}
