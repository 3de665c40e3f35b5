// The extension: it starts `kerngen lsp`, and the client of Microsoft's package does the rest.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

/** Return the program and arguments of the server. */
function command() {
  const set = vscode.workspace.getConfiguration("kerngen").get("command");
  if (Array.isArray(set) && set.length) return set;
  const windows = process.platform === "win32";
  const inside = windows ? [".venv", "Scripts", "kerngen.exe"] : [".venv", "bin", "kerngen"];
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    const program = path.join(folder.uri.fsPath, ...inside);
    if (fs.existsSync(program)) return [program, "lsp"];
  }
  return ["kerngen", "lsp"];
}

/** Start the server; where it can't be started, tell how to install it. */
async function start() {
  const [program, ...args] = command();
  const run = { command: program, args };
  const started = new LanguageClient(
    "kerngen",
    "kerngen",
    { run, debug: run },
    { documentSelector: [{ language: "kern" }] },
  );
  client = started;
  try {
    await started.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `'${[program, ...args].join(" ")}' can't be run (${error.message}). Install it by ` +
        "pip install 'kerngen[lsp]', or set 'kerngen.command'.",
    );
  }
}

/** Stop the server, if it runs. */
async function stop() {
  const stopped = client;
  client = undefined;
  if (stopped?.isRunning()) await stopped.stop();
}

exports.activate = async (context) => {
  const restart = async () => {
    await stop();
    await start();
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("kerngen.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("kerngen.command")) restart();
    }),
  );
  await start();
};

exports.deactivate = stop;
