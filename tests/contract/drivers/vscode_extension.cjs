// Runs the extension of clients/examples/vscode_extension as an editor would, with the part of its API that it uses.
// Prints what a user would see. Arguments: the built extension, the folder of the window, the selected file.

const Module = require("node:module");
const [built, folder, path] = process.argv.slice(2);
const uri = (fsPath) => ({ fsPath });
const commands = new Map();
const vscode = {
  ProgressLocation: { Notification: 15 },
  Uri: { file: uri },
  commands: { registerCommand: (name, run) => (commands.set(name, run), { dispose() {} }) },
  languages: { getDiagnostics: ({ fsPath }) => [{ range: { start: { line: 1 } }, severity: 0, message: `undefined name in ${fsPath}` }] },
  window: {
    activeTextEditor: {
      document: { uri: uri(path), getText: () => "total = sum(price)" },
      selection: { start: { line: 1 }, end: { line: 1 } },
    },
    createOutputChannel: () => ({
      append: (text) => process.stdout.write(text),
      appendLine: (text) => console.log(text),
      show() {},
      dispose() {},
    }),
    showErrorMessage: async (text) => console.log(`error: ${text}`),
    showInputBox: async () => "What is wrong here?",
    showWarningMessage: async (_title, { detail }, ...choices) => (console.log(`asked: ${detail}: ${choices}`), "Allow"),
    withProgress: (_options, work) => work({}, { onCancellationRequested: () => ({ dispose() {} }) }),
  },
  workspace: {
    getConfiguration: () => ({ get: (_name, otherwise) => process.env.JUMPSEAT ?? otherwise }),
    getWorkspaceFolder: () => ({ uri: uri(folder) }),
  },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

(async () => {
  const { activate, deactivate } = require(built);
  activate({ subscriptions: [] });
  await commands.get("ask.selection")();
  await commands.get("ask.selection")();
  await deactivate();
})();
