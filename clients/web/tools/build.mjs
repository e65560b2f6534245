// Build the page into server/jumpseat/network/static, and fail if it is larger than the budget.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { licenses } from "./licenses.mjs";

const BUDGET_KB = 180;
const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = join(HERE, "..");
const REPOSITORY = join(ROOT, "../..");
const STATIC = join(REPOSITORY, "server/jumpseat/network/static");

await import("./wire_types.mjs");

const result = await build({
  entryPoints: { app: join(ROOT, "src/main.tsx") },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  outdir: STATIC,
  // The connection is made while the views are read. A name tells the content, so that browsers keep files, and what
  // they have compiled of them; site.py knows these names.
  splitting: true,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  write: false,
  metafile: true,
});

rmSync(STATIC, { recursive: true, force: true });
mkdirSync(STATIC, { recursive: true });
for (const file of result.outputFiles) writeFileSync(join(STATIC, relative(STATIC, file.path)), file.contents);
writeFileSync(join(STATIC, "icon.svg"), readFileSync(join(ROOT, "icon.svg")));
writeFileSync(join(STATIC, "index.html"), withNames(readFileSync(join(ROOT, "index.html"), "utf8")));
writeFileSync(join(STATIC, "LICENSES.txt"), licenses(Object.keys(result.metafile.inputs), ROOT));
writeFileSync(join(STATIC, "SOURCES"), `${sourcesHash()}\n`);

let total = 0;
for (const name of readdirSync(STATIC).sort()) {
  const content = readFileSync(join(STATIC, name));
  const size = gzipSync(content, { level: 9 }).length;
  if (/\.(html|js|css|svg)$/.test(name)) total += size;
  console.log(`${name.padEnd(20)} ${(content.length / 1024).toFixed(1).padStart(7)} KB  ${(size / 1024).toFixed(1).padStart(6)} KB gzipped`);
}
console.log(`${"page".padEnd(20)} ${"".padStart(10)}  ${(total / 1024).toFixed(1).padStart(6)} KB gzipped, budget ${BUDGET_KB} KB`);
if (total > BUDGET_KB * 1024) {
  console.error(`the page is larger than its budget of ${BUDGET_KB} KB`);
  process.exit(1);
}

/** Return the document with the names that its files have got; what a part of the page imports is loaded with it. */
function withNames(html) {
  const preloaded = new Set();
  return html.replace(/^.*(?:src|href)="(\w+)\.(js|css)".*\n/gm, (line, stem, ending) => {
    const fits = (path) => path.endsWith(`.${ending}`) && basename(path).replace(/-\w+\.\w+$/, "") === stem;
    const [path, output] = Object.entries(result.metafile.outputs).find(([one]) => fits(one));
    const shared = output.imports.filter((one) => one.kind === "import-statement" && !preloaded.has(one.path)).map((one) => one.path);
    for (const one of shared) preloaded.add(one);
    return line.replace(`${stem}.${ending}`, basename(path)) + shared.map((one) => `    <link rel="modulepreload" href="${basename(one)}">\n`).join("");
  });
}

/** The hash of everything that the page is built from; packaging/page_hook.py computes the same. */
function sourcesHash() {
  const paths = ["index.html", "icon.svg", "package.json", "package-lock.json"];
  const walk = (folder) => {
    for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (entry.name !== "generated") walk(path);
      } else paths.push(path);
    }
  };
  walk("src");
  walk("tools");
  const hash = createHash("sha256");
  for (const path of paths.sort()) hash.update(path).update("\0").update(readFileSync(join(ROOT, path))).update("\0");
  hash.update(readFileSync(join(REPOSITORY, "protocol/schema/jumpseat.schema.json")));
  return hash.digest("hex");
}
