// The playground: a text is compiled as it is typed, and its kernels run here.
import { open } from "kerngen";
import { Compiler } from "./compiler.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { lexer } from "./highlight.js";
import { Panes } from "./panes.js";
import { Form } from "./run.js";
import { decode, encode } from "./share.js";

const $ = (id) => document.getElementById(id);
const BASE = "https://page.invalid/";

const rules = await (await fetch(new URL("./highlight.json", import.meta.url))).json();
let files = {};
const context = open({ read: async (url) => files[url.pathname.slice(1)] });
const linked = decode(location.hash);
/** What is said of a link of which nothing was read. */
const unread =
  location.hash.length > 1 && linked === undefined
    ? "The link has no text that can be read; this is an example."
    : "";
/** What is said in place of a result. */
let unable = "";
context.catch((error) => {
  unable = $("result").textContent = `${error.message} Here it compiles, and can't run.`;
});

const editor = new Editor($("source"), $("colours"), lexer(rules));
const panes = new Panes($("tabs"), $("pane"));
const form = new Form(context);
const compiler = new Compiler({
  ready({ took }) {
    $("status").textContent = `Ready, in ${(took / 1000).toFixed(1)} s. ${unread}`;
    keep();
  },
  found(found) {
    $("found").replaceChildren(...found.map(message));
    if (!found.length) $("found").textContent = "No errors.";
    const isStale = "page.js" in files && found.some(({ severity }) => severity === "error");
    document.querySelector("main").classList.toggle("stale", isStale);
    if (isStale) $("found").append("The rest is of the last text without errors.");
    editor.mark(found);
  },
  compiled(compiled) {
    files = compiled.files;
    panes.show(compiled);
    load().catch((error) => ($("result").textContent = error.message));
  },
  failed(why, again) {
    $("status").textContent = again
      ? "The compiler failed on this text, and is loaded again."
      : "The compiler can't be loaded: reload the page.";
    $("found").textContent = why;
  },
});

/** A fault as a button that goes to its place. */
function message({ severity, code, headline, line, column, hint, related }) {
  const place = line ? `${line}:${column} ` : "";
  const item = document.createElement(line ? "button" : "div");
  item.className = severity;
  const word = document.createElement("b");
  word.textContent = `${severity}${code ? `[${code}]` : ""}`;
  item.append(place, word, `: ${headline}`);
  for (const each of related ?? []) item.append(`\n    ${each.line ?? ""}: ${each.label ?? each.headline ?? ""}`);
  if (hint) item.append(`\n    ${hint}`);
  if (line) item.onclick = () => editor.go(line, column);
  return item;
}

// The module that was generated, with the page in place of a server.
async function load() {
  const text = files["page.js"].replaceAll("import.meta.url", JSON.stringify(BASE));
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const module = await import(url);
  URL.revokeObjectURL(url);
  // A module's names are sorted; the plan has the order of the text.
  const plan = Object.keys(files).find((path) => path.endsWith(".plan"));
  const order = (plan ? files[plan] : "").split("\n").filter((line) => line.startsWith("kernel "));
  const place = ([, { kernel }]) => order.findIndex((line) => line.startsWith(`kernel ${kernel.name} `));
  const kernels = Object.entries(module).filter(([, value]) => value.kernel);
  form.show(Object.fromEntries(kernels.sort((a, b) => place(a) - place(b))));
}

/** Keep all of it for when there is no network. */
function keep() {
  const url = new URL("./offline.js", import.meta.url);
  navigator.serviceWorker?.register(url).catch((error) => console.warn(error));
}

function begin(text) {
  form.clear(unable);
  editor.text = text;
  compiler.look(text);
}

$("examples").append(...Object.keys(EXAMPLES).map((name) => new Option(name)));
$("examples").onchange = () => begin(EXAMPLES[$("examples").value]);
$("source").addEventListener("input", () => compiler.look(editor.text));
$("share").onclick = async () => {
  location.hash = encode(editor.text);
  // A page of http, and one that is not in front, may not copy.
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  $("status").textContent = `The link is in the address bar${copied ? ", and copied" : ""}.`;
};
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void form.run();
});
addEventListener("hashchange", () => {
  const text = decode(location.hash);
  if (text !== undefined && text !== editor.text) begin(text);
});

if (unread) $("status").textContent = unread;
begin(linked ?? EXAMPLES.Softmax);
