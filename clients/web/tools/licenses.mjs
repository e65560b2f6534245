// The licences of the packages in a bundle.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Return the licences of the packages that the inputs of a bundle are from; `root` is the folder of `node_modules`. */
export function licenses(inputs, root) {
  const names = new Set(inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
  return [...names].sort().map((name) => {
    const folder = join(root, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry) && statSync(join(folder, entry)).isFile());
    return `${name} ${about.version} (${about.license})\n\n${file ? readFileSync(join(folder, file), "utf8") : ""}`;
  }).join(`\n${"-".repeat(80)}\n`);
}
