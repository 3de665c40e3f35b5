// What a text becomes: shaders by their stages and schedules, modules, layouts.

const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const code = (text) => element("pre", { textContent: text });

const TABS = {
  Schedules: schedules,
  Python: ({ files, twin }) => code(twin ? files["page.py"].replace(twin, "# The NumPy twin is beside.") : files["page.py"]),
  NumPy: ({ twin }) => code(twin || "There is no kernel."),
  TypeScript: ({ files }) => code(`${files["page.d.ts"]}\n\n// page.js\n\n${files["page.js"]}`),
  Layout: ({ layout }) => (layout.length ? pieces(layout) : code("There is no struct, and no kernel has scalars or dims.")),
};

export class Panes {
  tab = "Schedules";

  constructor(tabs, pane) {
    Object.assign(this, { tabs, pane });
    for (const name of Object.keys(TABS)) {
      const button = element("button", { textContent: name, onclick: () => this.choose(name) });
      button.setAttribute("role", "tab");
      tabs.append(button);
    }
    this.choose(this.tab);
  }

  choose(name) {
    this.tab = name;
    for (const each of this.tabs.children)
      each.setAttribute("aria-selected", String(each.textContent === name));
    this.paint();
  }

  show(compiled) {
    this.compiled = compiled;
    this.paint();
  }

  paint() {
    if (this.compiled) this.pane.replaceChildren(TABS[this.tab](this.compiled));
  }
}

/** The plan: a stage has schedules with conditions, and these have the shaders that run. */
function schedules({ files }) {
  const plan = Object.keys(files).find((path) => path.endsWith(".plan"));
  if (!plan) return code("There is no kernel.");
  const folder = plan.slice(0, plan.lastIndexOf("/") + 1);
  const shader = element("pre", { className: "shader" });
  const tree = element("pre", { className: "tree" });
  const buttons = [];
  const show = (button, name) => {
    buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
    const [file, entry = "main"] = name.split(":");
    const text = files[`${folder}${file}.wgsl`];
    shader.textContent = `// ${file}.wgsl, entry point ${entry}\n\n${text}`;
  };
  // What the text declares is not repeated.
  const lines = files[plan]
    .split("\n")
    .slice(2, -2)
    .filter((line) => !/^  (dims|read|update|write|scalar) /.test(line));
  for (const line of lines) {
    // `rows | when n > 4 | run softmax.rows(x, y*) | groups m`
    for (const part of line.split(/(?<= \| |^ *)((?:run [^(]+\(|when )[^|]*)/)) {
      const name = /^run ([^(]+)(\(.*)$/.exec(part);
      if (name) {
        const button = element("button", { className: "run", textContent: name[1] });
        button.onclick = () => show(button, name[1]);
        buttons.push(button);
        tree.append("run ", button, name[2]);
      } else {
        const quiet = part.startsWith("when ") ? "when" : "";
        tree.append(element("span", { className: quiet, textContent: part }));
      }
    }
    tree.append("\n");
  }
  if (buttons.length) show(buttons[0], buttons[0].textContent);
  return element("div", { className: "split" }, tree, shader);
}

/** Lines of pieces, each with its style. */
function pieces(lines) {
  const shown = lines.flatMap((line) => [
    ...line.map(([text, style]) => element("span", { className: style, textContent: text })),
    "\n",
  ]);
  return element("pre", {}, ...shown);
}
