// Asks the tests for jobs, one after the other, and sends back what came of each.
import { open } from "kerngen";

const ELEMENTS = { f32: Float32Array, i32: Int32Array, u32: Uint32Array };
const opened = open({ loopTurns: 65500 });
let ctx;

const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;

function encode(array) {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += 4096)
    text += String.fromCharCode(...bytes.subarray(at, at + 4096));
  return { data: btoa(text), dtype: array.constructor.name };
}

// Numbers of JSON, with the three that it has no words for.
const number = (value) =>
  Array.isArray(value) ? value.map(number) : typeof value === "string" ? Number(value) : value;

const upload = ({ data, shape, element }) =>
  element in ELEMENTS
    ? ctx.tensor(new ELEMENTS[element](decode(data)), shape)
    : ctx.tensor(new Float32Array(decode(data)), shape, element);

// Return what calls a kernel that no module has: only the package's own modules can.
async function launching(kernel) {
  const { launch } = await import("/dist/launch.js");
  return (...given) => launch(kernel, given);
}

const JOBS = {
  async describe() {
    return { limits: { ...ctx.limits, loopTurns: 0 }, features: [...ctx.device.features] };
  },

  // Call a kernel, by the body of a plan other than its own if the text of one is given.
  async call({ module, kernel, plan, tensors, scalars }) {
    const made = await import(`/generated/${module}.js`);
    const own = made[kernel].kernel;
    const used = plan ? { ...own, body: new Function(plan)().body } : own;
    const run = plan ? await launching(used) : (...given) => made[kernel](...given);
    const inputs = tensors.map(upload);
    const options = { ctx };
    for (const name in scalars) options[name] = number(scalars[name]);
    const result = run(...inputs, options);
    const outputs =
      used.outputs.length > 1 ? used.outputs.map(({ field, name }) => result[field ?? name]) : [result];
    const changed = inputs.filter((_, i) => used.inputs[i].access === "update");
    const read = [...changed, ...outputs].filter(Boolean);
    const arrays = await Promise.all(read.map((each) => each.read()));
    [...inputs, ...outputs].forEach((each) => each?.free());
    return { arrays: arrays.map((array, i) => ({ ...encode(array), shape: read[i].shape })) };
  },

  // Run a module of a test, which exports a function of the context.
  async run({ source, given }) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    return (await import(url)).default(ctx, given);
  },
};

async function work() {
  for (;;) {
    const answer = await fetch("/job");
    if (answer.status === 204) continue;
    if (!answer.ok) return;
    const { id, name, given } = await answer.json();
    let result;
    try {
      ctx = await opened;
      result = { value: await JOBS[name](given) };
    } catch (error) {
      result = { error: error.name, message: error.message, stack: error.stack };
    }
    await fetch(`/result/${id}`, { method: "POST", body: JSON.stringify(result) });
  }
}

for (let i = 0; i < 3; i++) work();
