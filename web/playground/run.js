// Run: a form for lengths, scalars and tensors of a kernel, and what comes out of it.
import { draw as drawInputs, FILLS, numbers, ones, OWN } from "./inputs.js";
import { draw, rangeOf, show, text, viewsOf } from "./picture.js";

const $ = (id) => document.getElementById(id);
const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const select = (values, properties) =>
  element("select", properties, ...values.map((value) => new Option(value)));
const nameOf = (type) => type.name ?? type;
const row = (name, ...fields) =>
  element("tr", {}, element("th", { textContent: name }), element("td", {}, ...fields));

/** The form of one module's kernels; what was typed for a name stays. */
export class Form {
  // Without what all objects have: a dim may be called `constructor`.
  typed = Object.create(null);

  constructor(context) {
    this.context = context;
    this.run = () => this.start();
  }

  show(kernels) {
    this.kernels = kernels;
    const names = Object.keys(kernels);
    const choice = select(names, { id: "kernel", ariaLabel: "Kernel", onchange: () => this.build() });
    if (names.includes(this.choice?.value)) choice.value = this.choice.value;
    this.choice = choice;
    this.build();
  }

  build() {
    const name = this.choice.value;
    if (!name) return void $("inputs").replaceChildren();
    const { kernel } = this.kernels[name];
    const rows = kernel.dims.map((dim) => row(dim, this.field(dim, 64, { type: "number", min: 0 })));
    for (const [scalar, element, initial] of kernel.scalars) {
      const type = nameOf(element);
      const single = /^[fiu]\d+$/.test(type);
      const start = initial ?? ones(element);
      const kind = single ? { type: "number", step: "any" } : { className: "values" };
      rows.push(row(`${scalar}: ${type}`, this.field(scalar, start, kind)));
    }
    for (const { name: input, element: of, axes } of kernel.inputs)
      rows.push(row(`${input}: ${nameOf(of)}[${axes.join(", ")}]`, ...this.fill(input)));
    rows.push(row("seed", this.field("seed", 1, { type: "number", min: 0 })));
    const button = element("button", { textContent: "Run", title: "Ctrl+Enter", onclick: this.run });
    const bar = element("div", { className: "bar" }, this.choice, button);
    $("inputs").replaceChildren(bar, element("table", {}, ...rows));
  }

  field(name, start, properties) {
    const input = element("input", { ...properties, ariaLabel: name, value: this.typed[name] ?? start });
    input.dataset.name = name;
    input.oninput = () => (this.typed[name] = input.value);
    return input;
  }

  fill(name) {
    const key = `fill ${name}`;
    const own = this.field(`own ${name}`, "1, 2, 3", { className: "values" });
    const choice = select([...Object.keys(FILLS), OWN], { ariaLabel: `Fill ${name}` });
    choice.dataset.name = key;
    choice.value = this.typed[key] ?? "random";
    const hide = () => (own.hidden = choice.value !== OWN);
    choice.onchange = () => {
      this.typed[key] = choice.value;
      hide();
    };
    hide();
    return [choice, " ", own];
  }

  values() {
    const fields = $("inputs").querySelectorAll("[data-name]");
    return Object.fromEntries([...fields].map((each) => [each.dataset.name, each.value]));
  }

  async start() {
    if (!this.choice?.value) return;
    $("result").textContent = "Running ...";
    try {
      await this.call(this.kernels[this.choice.value]);
    } catch (error) {
      this.clear(`${error.name}: ${error.message}`);
    }
  }

  /** Show a sentence in place of a result. */
  clear(sentence = "") {
    $("result").textContent = sentence;
    [$("picture").hidden, $("numbers").hidden] = [true, true];
    $("views").replaceChildren();
  }

  async call(run) {
    const ctx = await this.context;
    const { kernel } = run;
    const given = this.values();
    const dims = Object.fromEntries(kernel.dims.map((dim) => [dim, number(given[dim], dim)]));
    const fills = Object.fromEntries(
      kernel.inputs.map(({ name }) => [name, { fill: given[`fill ${name}`], own: given[`own ${name}`] }]),
    );
    const scalars = Object.fromEntries(
      kernel.scalars.map(([name, type]) => [name, scalar(given[name], nameOf(type), name)]),
    );
    const made = [];
    const prepare = () => {
      const tensors = drawInputs(ctx, kernel, dims, Number(given.seed), fills);
      made.push(...tensors);
      return tensors;
    };
    try {
      const once = run(...prepare(), { ...scalars, ctx });
      if (once) made.push(...(once.read ? [once] : Object.values(once)));
      await ctx.submit(); // pipelines are made
      const tensors = prepare();
      await ctx.submit();
      const begin = performance.now();
      const result = run(...tensors, { ...scalars, ctx });
      const outputs = named(kernel, tensors, result);
      made.push(...Object.values(outputs));
      const data = Object.create(null);
      for (const name in outputs) data[name] = await outputs[name].read();
      const took = performance.now() - begin;
      const chosen = ctx.choices(run, { ...dims, ...scalars }).join(", ");
      $("result").textContent = `${kernel.name}: ${took.toFixed(1)} ms, by ${chosen}`;
      this.present(outputs, data);
    } finally {
      made.forEach((each) => each.free());
    }
  }

  present(outputs, data) {
    const names = Object.keys(outputs);
    const choice = select(names, { ariaLabel: "Output" });
    if (names.includes(this.typed.output)) choice.value = this.typed.output;
    const view = select([], { ariaLabel: "View" });
    const what = element("span", {});
    const paint = () => {
      const [own, values] = [outputs[choice.value], data[choice.value]];
      const picture = view.value !== "numbers";
      [$("picture").hidden, $("numbers").hidden] = [!picture, picture];
      if (picture) draw($("picture"), values, own, view.value);
      else $("numbers").textContent = text(values, own);
      const { least, most } = rangeOf(values);
      what.textContent = least <= most ? `${own}, from ${show(least)} to ${show(most)}` : `${own}`;
    };
    const list = () => {
      const views = viewsOf(outputs[choice.value]);
      view.replaceChildren(...views.map((each) => new Option(each)));
      if (views.includes(this.typed.view)) view.value = this.typed.view;
      paint();
    };
    choice.onchange = () => (this.typed.output = choice.value) && list();
    view.onchange = () => (this.typed.view = view.value) && paint();
    list();
    $("views").replaceChildren(choice, view, what);
  }
}

/** What a call changed or made, by names. */
function named(kernel, tensors, result) {
  const changed = kernel.inputs.flatMap(({ name, access }, i) =>
    access === "update" ? [[name, tensors[i]]] : [],
  );
  const made = kernel.outputs.length === 1 ? [[kernel.outputs[0].name, result]] : Object.entries(result ?? {});
  return Object.fromEntries([...made, ...changed]);
}

/** Read a scalar; a vector is written as its numbers, a matrix as those of its columns. */
function scalar(text, type, name) {
  const [, width, columns, rows] = /^(?:vec(\d).|mat(\d)x(\d).)$/.exec(type) ?? [];
  if (width) return numbers(text);
  if (columns) {
    const all = numbers(text);
    return Array.from({ length: columns }, (_, i) => all.slice(i * rows, (i + 1) * rows));
  }
  if (!/^[fiu]\d+$/.test(type)) return JSON.parse(text); // a struct
  return number(text, name);
}

function number(text, name) {
  if (text.trim() === "") throw new TypeError(`'${name}' has no number.`);
  return Number(text);
}
