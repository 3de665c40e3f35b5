// Print the tokens of files by the TextMate grammar: a JSON list of [start, end, scope] each.
//
//     node tokens.mjs FOLDER-OF-THE-EXTENSION FILE...
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const textmate = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.length));
const path = join(folder, "syntaxes/kern.tmLanguage.json");
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(readFileSync(path, "utf-8"), path),
});
const grammar = await registry.loadGrammar("source.kern");

for (const file of files) {
  const tokens = [];
  let stack = textmate.INITIAL;
  let start = 0;
  for (const line of readFileSync(file, "utf-8").split("\n")) {
    const found = grammar.tokenizeLine(line, stack);
    for (const token of found.tokens) {
      const scope = token.scopes.length > 1 ? token.scopes.at(-1) : "";
      tokens.push([start + token.startIndex, start + Math.min(token.endIndex, line.length), scope]);
    }
    stack = found.ruleStack;
    start += line.length + 1;
  }
  console.log(JSON.stringify(tokens));
}
