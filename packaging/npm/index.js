"use strict";
// Where the executable is: an SDK or an extension starts it itself.

const { dirname, join } = require("node:path");

/** Return the absolute path of the executable for this platform. */
function executable() {
  const platform = `${process.platform}-${process.arch}`;
  const name = `@jumpseat/cli-${platform}`;
  let folder;
  try {
    folder = dirname(require.resolve(`${name}/package.json`));
  } catch {
    throw new Error(`the package ${name} is not installed: install it beside @jumpseat/cli, or there is none for this platform`);
  }
  return join(folder, process.platform === "win32" ? "jumpseat.exe" : "jumpseat");
}

exports.executable = executable;
