// Run the tests in test/ of a client with the test runner of Node, bundled one by one because Node cannot read
// TypeScript with JSX.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

/** Run the tests of the client in a folder; returns the exit code. */
export async function runTests(root) {
  const folder = mkdtempSync(join(tmpdir(), "jumpseat-client-test-"));
  const tests = readdirSync(join(root, "test")).filter((name) => name.endsWith(".test.ts"));
  await import("./wire_types.mjs");
  await build({
    entryPoints: tests.map((name) => join(root, "test", name)),
    bundle: true,
    format: "esm",
    platform: "node",
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    jsx: "automatic",
    jsxImportSource: "preact",
    sourcemap: "inline",
  });
  const run = spawnSync(process.execPath, ["--test", "--enable-source-maps", ...tests.map((name) => join(folder, name.replace(/ts$/, "mjs")))], { stdio: "inherit" });
  rmSync(folder, { recursive: true });
  return run.status ?? 1;
}
