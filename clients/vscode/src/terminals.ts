// The latest commands in the terminals of the window, with their output, as the shell integration reports them.

import * as vscode from "vscode";
import { plainOutput, type Run } from "./format.ts";

const MOST_RUNS = 20;
const MOST_CHARACTERS = 200_000;

export class Terminals {
  readonly subscriptions: vscode.Disposable[];
  private readonly runs: (Run & { execution: vscode.TerminalShellExecution; raw: string })[] = [];

  constructor() {
    this.subscriptions = [
      vscode.window.onDidStartTerminalShellExecution(({ terminal, execution }) => void this.follow(terminal, execution)),
      vscode.window.onDidEndTerminalShellExecution(({ execution, exitCode }) => {
        const run = this.runs.find((one) => one.execution === execution);
        if (run) Object.assign(run, { running: false, exitCode: exitCode ?? null });
      }),
    ];
  }

  /** Return the latest commands, the oldest first. */
  latest(count: number): Run[] {
    return this.runs.slice(-count).map((run) => ({ ...run, output: plainOutput(run.raw) }));
  }

  private async follow(terminal: vscode.Terminal, execution: vscode.TerminalShellExecution): Promise<void> {
    const run = { terminal: terminal.name, command: execution.commandLine.value, folder: execution.cwd?.fsPath ?? "", output: "", exitCode: null, running: true, execution, raw: "" };
    this.runs.push(run);
    if (this.runs.length > MOST_RUNS) this.runs.shift();
    for await (const data of execution.read()) {
      run.raw += data;
      if (run.raw.length > MOST_CHARACTERS) run.raw = run.raw.slice(-MOST_CHARACTERS / 2);
    }
  }
}
