// Run the tests in test/ with the test runner of Node, bundled one by one because Node cannot read TypeScript with JSX.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const folder = mkdtempSync(join(tmpdir(), "jumpseat-web-test-"));
const tests = readdirSync(join(ROOT, "test")).filter((name) => name.endsWith(".test.ts"));
await import("./wire_types.mjs");
await build({
  entryPoints: tests.map((name) => join(ROOT, "test", name)),
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
process.exit(run.status ?? 1);
