#!/usr/bin/env node
"use strict";
// The command `jumpseat`: runs the executable, and ends as it does.

const { spawn } = require("node:child_process");
const { executable } = require("./index.js");

let path;
try {
  path = executable();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(1);
}
const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends an interrupt to both processes: the command decides.
process.on("SIGINT", () => undefined);
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: ${path}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
