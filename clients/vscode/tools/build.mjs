// Build the extension and its page into dist/.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { licenses } from "../../web/tools/licenses.mjs";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const WEB = join(ROOT, "../web");
const DIST = join(ROOT, "dist");

await import("../../web/tools/wire_types.mjs");
rmSync(DIST, { recursive: true, force: true });
mkdirSync(DIST);

const common = { bundle: true, minify: true, legalComments: "none", charset: "utf8", outdir: DIST, metafile: true };
const extension = await build({ ...common, entryPoints: { extension: join(ROOT, "src/extension.ts") }, format: "cjs", platform: "node", target: "node20", external: ["vscode"], outExtension: { ".js": ".cjs" } });
const page = await build({ ...common, entryPoints: { page: join(ROOT, "src/page/main.ts") }, format: "esm", target: ["es2022"], jsx: "automatic", jsxImportSource: "preact" });
const inputs = [...Object.keys(extension.metafile.inputs), ...Object.keys(page.metafile.inputs)];
writeFileSync(join(DIST, "LICENSES.txt"), licenses(inputs, WEB));
writeFileSync(join(DIST, "LICENSE"), readFileSync(join(ROOT, "../../LICENSE")));
