/** Plans of kernels, read from the text that generated modules hold. */
import { AbiError } from "./errors.js";
import { parse, type Size } from "./size.js";

/** A length of an axis: a dim by name, or a number. */
export type Axis = string | number;

export interface TensorPlan {
  readonly name: string;
  readonly element: string;
  readonly axes: readonly Axis[];
  /** `temporary` tensors live between the dispatches of one call. */
  readonly access: "read" | "update" | "write" | "temporary";
}

/** Something with a size or condition, and its source's text. */
export interface Named {
  readonly name: string;
  readonly text: string;
  readonly value: Size;
}

/** A subscript that must stay inside its axis, or an axis that is gathered from. */
export interface Check {
  readonly tensor: string;
  readonly axis: string;
  readonly extent: Axis;
  readonly around: readonly Axis[];
  readonly text: string;
  readonly offset: Size;
  readonly terms: readonly (readonly [Axis, Size])[];
  readonly guarded: boolean;
}

/** One shader and its number of workgroups. */
export interface Dispatch {
  readonly wgsl: string;
  readonly bindings: readonly { readonly name: string; readonly writes: boolean }[];
  readonly constants: Readonly<Record<string, number>>;
  readonly groups: Size;
  readonly trips: Size;
  readonly terms: Size;
  readonly uniform: boolean;
}

/** A case of a choice, and the steps that it runs. */
export interface Case {
  readonly name: string;
  readonly when: Size;
  readonly bytes: number;
  readonly invocations: number;
  readonly subgroups: boolean;
  readonly scratch: readonly (readonly [string, Size])[];
  readonly body: readonly Step[];
}

/** The first of its cases that applies runs. */
export interface Choice {
  readonly stages: readonly string[];
  readonly cases: readonly Case[];
}

/** Dispatches that run `count` times, one round after the other; 0 times below 1. */
export interface Repeat {
  readonly count: Size;
  readonly body: readonly Dispatch[];
}

export type Step = Dispatch | Choice | Repeat;

export interface KernelPlan {
  readonly name: string;
  readonly place: string;
  readonly dims: readonly string[];
  readonly inputs: readonly TensorPlan[];
  readonly outputs: readonly TensorPlan[];
  readonly temporaries: readonly TensorPlan[];
  readonly scalars: readonly (readonly [string, string])[];
  readonly guards: readonly string[];
  readonly computed: readonly string[];
  readonly requires: readonly Named[];
  readonly lengths: readonly Named[];
  readonly ranges: readonly Check[];
  readonly gathers: readonly Check[];
  readonly body: readonly Step[];
}

interface Line {
  readonly depth: number;
  readonly fields: string[];
}

const HEAD = "kerngen plan 5 | ";

/** Return the lines of each kernel in a plan's text. */
export function kernelTexts(text: string): Map<string, string> {
  if (!text.startsWith(HEAD)) {
    const version = text.slice(0, text.indexOf(" | "));
    throw new AbiError(
      `A generated module has a '${version}'; this runtime reads '${HEAD.slice(0, -3)}'. ` +
        `Run 'kerngen build' with the version of the npm package.`,
    );
  }
  const blocks = text.split("\n\n").slice(1);
  return new Map(blocks.map((block) => [block.split(" ", 2)[1]!, block]));
}

const axis = (text: string): Axis => (/^\d+$/.test(text) ? Number(text) : text);
const axes = (text: string): Axis[] => listed(text.slice(1, -1)).map(axis);
const listed = (text: string): string[] => (text ? text.split(", ") : []);

/** Read one kernel. */
export function readKernel(block: string): KernelPlan {
  const lines = block.split("\n").map((text): Line => {
    const bare = text.trimStart();
    return { depth: (text.length - bare.length) / 2, fields: bare.split(" | ") };
  });
  const [head, origin] = lines[0]!.fields as [string, string];
  const name = head.slice("kernel ".length);
  const tensors: TensorPlan[] = [];
  const scalars: [string, string][] = [];
  const lists: Record<string, string[]> = { dims: [], guards: [], computed: [] };
  const [requires, lengths]: Named[][] = [[], []];
  const [ranges, gathers]: Check[][] = [[], []];
  const lets: Record<string, Size> = {};
  let at = 1;
  for (; at < lines.length; at++) {
    const { depth, fields } = lines[at]!;
    const [word, rest] = cut(fields[0]!, " ");
    if (depth !== 1 || /^(stage|run|repeat)$/.test(word)) break;
    if (word in lists) lists[word] = listed(rest);
    else if (word === "scalar") scalars.push(cut(rest, " "));
    else if (word === "require")
      requires!.push({ name: "", value: parse(rest), text: JSON.parse(fields[1]!) });
    else if (word === "length")
      lengths!.push({ name: rest, value: parse(fields[1]!), text: JSON.parse(fields[2]!) });
    else if (word === "range") ranges!.push(check(rest, fields.slice(1)));
    else if (word === "gather") gathers!.push(check(rest, ['""', fields[1]!]));
    else if (word === "let") {
      const [own, text] = cut(rest, " = ");
      lets[own] = parse(text, lets);
    } else if (/^(read|update|write|temporary)$/.test(word)) {
      const [, own, element, shape] = /^(\S+) (.+?)(\[.*\])$/.exec(rest)!;
      tensors.push({
        name: own!,
        element: element!,
        axes: axes(shape!),
        access: word as TensorPlan["access"],
      });
    } else if (word !== "gradient") break; // a case without a stage
  }
  const of = (pattern: RegExp): TensorPlan[] => tensors.filter((t) => pattern.test(t.access));
  return {
    name,
    place: `${name} (${JSON.parse(origin)})`,
    dims: lists["dims"]!,
    inputs: of(/read|update/),
    outputs: of(/write/),
    temporaries: of(/temporary/),
    scalars,
    guards: lists["guards"]!,
    computed: lists["computed"]!,
    requires: requires!,
    lengths: lengths!,
    ranges: ranges!,
    gathers: gathers!,
    body: steps(lines.slice(at), 1, lets),
  };
}

function cut(text: string, at: string): [string, string] {
  const place = text.indexOf(at);
  return place < 0 ? [text, ""] : [text.slice(0, place), text.slice(place + at.length)];
}

function check(place: string, [text, around, ...others]: string[]): Check {
  const [, tensor, number, extent] = /^(".*") (\d+) (\S+)$/.exec(place)!;
  const terms: [Axis, Size][] = [];
  let offset: Size = 0n;
  for (const each of others) {
    const [word, rest] = cut(each, " ");
    const [over, by] = cut(rest, " by ");
    if (word === "offset") offset = parse(rest);
    else if (word === "term") terms.push([axis(over), parse(by)]);
  }
  return {
    tensor: JSON.parse(tensor!),
    axis: number!,
    extent: axis(extent!),
    around: axes(around!.slice("around ".length)),
    text: JSON.parse(text!),
    offset,
    terms,
    guarded: others.includes("guarded"),
  };
}

/** Read the steps of some depth. */
function steps(lines: readonly Line[], depth: number, lets: Record<string, Size>): Step[] {
  const found: Step[] = [];
  let cases: Case[] = [];
  for (let at = 0; at < lines.length; ) {
    const { fields } = lines[at]!;
    let end = at + 1;
    while (end < lines.length && lines[end]!.depth > depth) end++;
    const inner = lines.slice(at + 1, end);
    const [word, rest] = cut(fields[0]!, " ");
    if (word === "run") found.push(dispatch(fields, lets));
    else if (word === "repeat")
      found.push({
        count: parse(rest, lets),
        body: steps(inner, depth + 1, lets) as Dispatch[],
      });
    else if (word === "stage") {
      const [choice] = steps(inner, depth + 1, lets) as [Choice];
      found.push({ stages: listed(rest), cases: choice.cases });
    } else {
      cases.push(readCase(fields, inner, depth, lets));
      if (cases.at(-1)!.when === "true") {
        found.push({ stages: [], cases });
        cases = [];
      }
    }
    at = end;
  }
  return found;
}

function readCase(
  fields: readonly string[],
  inner: readonly Line[],
  depth: number,
  lets: Record<string, Size>,
): Case {
  const start = fields.findIndex((each) => each.startsWith("run "));
  const own = start < 0 ? fields : fields.slice(0, start);
  const find = (word: string): string[] =>
    own.filter((each) => each.startsWith(`${word} `)).map((each) => cut(each, " ")[1]);
  const body = steps(inner, depth + 1, lets);
  if (start >= 0) body.unshift(dispatch(fields.slice(start), lets));
  return {
    name: own[0] === "-" ? "" : own[0]!,
    when: parse(find("when")[0] ?? "true", lets),
    bytes: Number(find("bytes")[0] ?? 0),
    invocations: Number(find("invocations")[0] ?? 0),
    subgroups: own.includes("subgroups"),
    scratch: find("scratch").map((each) => {
      const [name, length] = cut(each.slice(0, -1), "[");
      return [name, parse(length, lets)] as const;
    }),
    body,
  };
}

function dispatch(fields: readonly string[], lets: Record<string, Size>): Dispatch {
  const [, wgsl, bound] = /^run (.+?)\((.*)\)$/.exec(fields[0]!)!;
  const find = (word: string): string =>
    cut(fields.find((each) => each.startsWith(`${word} `)) ?? "", " ")[1];
  return {
    wgsl: wgsl!,
    bindings: listed(bound!).map((each) => ({
      name: each.replace("*", ""),
      writes: each.endsWith("*"),
    })),
    constants: Object.fromEntries(
      listed(find("with")).map((each) => [cut(each, " = ")[0], Number(cut(each, " = ")[1])]),
    ),
    groups: parse(find("groups"), lets),
    trips: parse(find("trips") || "0", lets),
    terms: parse(find("terms") || "0", lets),
    uniform: !fields.includes("no uniform"),
  };
}
