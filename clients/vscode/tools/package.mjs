// Pack dist/ and what the manifest names into jumpseat-VERSION.vsix: a ZIP archive with a manifest of its own
// (https://github.com/microsoft/vscode-vsce describes the format). The same sources give the same bytes.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { zipSync } from "fflate";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const OUTPUT = join(ROOT, "../../dist");
const LARGEST_KB = 400;
/** The time of all files in the archive, which the format dates from 1980 on. */
const TIME = new Date(1980, 0, 1, 12);
const TYPES = {
  ".json": "application/json", ".vsixmanifest": "text/xml", ".md": "text/markdown", ".txt": "text/plain", ".cjs": "application/javascript",
  ".js": "application/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png",
};

const version = /__version__[^"]*"([^"]+)"/.exec(readFileSync(join(ROOT, "../../protocol/jumpseat_protocol/version.py"), "utf8"))[1];
// Versions of extensions are three numbers.
const numbers = /^\d+\.\d+\.\d+/.exec(version)?.[0] ?? "0.0.0";
const { devDependencies: _dev, scripts: _scripts, private: _private, type: _type, ...about } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const manifest = { ...about, version: numbers };

const files = {
  "package.json": Buffer.from(JSON.stringify(manifest, null, 2)),
  "README.md": readFileSync(join(ROOT, "README.md")),
  "LICENSE.txt": readFileSync(join(ROOT, "dist/LICENSE")),
};
for (const folder of ["dist", "media"]) {
  for (const name of readdirSync(join(ROOT, folder)).sort()) {
    if (name !== "LICENSE") files[`${folder}/${name}`] = readFileSync(join(ROOT, folder, name));
  }
}
for (const path of named(manifest)) {
  if (!files[path]) throw new Error(`the manifest names ${path}, which does not exist`);
}
for (const path of Object.keys(files)) {
  if (!TYPES[extname(path)]) throw new Error(`${path}: the type of this file is unknown`);
}

const archive = {
  "extension.vsixmanifest": Buffer.from(vsixManifest()),
  "[Content_Types].xml": Buffer.from(`<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${Object.entries(TYPES).map(([ending, type]) => `<Default Extension="${ending}" ContentType="${type}"/>`).join("")}</Types>\n`),
  ...Object.fromEntries(Object.entries(files).map(([path, content]) => [`extension/${path}`, content])),
};
const packed = zipSync(archive, { level: 9, mtime: TIME });
mkdirSync(OUTPUT, { recursive: true });
for (const name of readdirSync(OUTPUT)) {
  if (name.endsWith(".vsix")) rmSync(join(OUTPUT, name));
}
const output = join(OUTPUT, `jumpseat-${numbers}.vsix`);
writeFileSync(output, packed);
console.log(`dist/jumpseat-${numbers}.vsix: ${Object.keys(files).length} files, ${(packed.length / 1024).toFixed(1)} KB`);
if (packed.length > LARGEST_KB * 1024) {
  console.error(`the extension is larger than ${LARGEST_KB} KB`);
  process.exit(1);
}

/** The files that a manifest names. */
function named(value) {
  if (typeof value === "string") return /^(\.\/)?(media|dist)\//.test(value) ? [value.replace(/^\.\//, "")] : [];
  return value && typeof value === "object" ? Object.values(value).flatMap(named) : [];
}

function vsixManifest() {
  const escape = (text) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
  const property = (id, value) => `<Property Id="Microsoft.VisualStudio.${id}" Value="${escape(value)}"/>`;
  const asset = (type, path) => `<Asset Type="Microsoft.VisualStudio.${type}" Path="extension/${path}" Addressable="true"/>`;
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${manifest.name}" Version="${numbers}" Publisher="${manifest.publisher}"/>
    <DisplayName>${escape(manifest.displayName)}</DisplayName>
    <Description xml:space="preserve">${escape(manifest.description)}</Description>
    <Tags>${escape(manifest.keywords.join(","))}</Tags>
    <Categories>${manifest.categories.join(",")}</Categories>
    <GalleryFlags>Public</GalleryFlags>
    <License>extension/LICENSE.txt</License>
    <Icon>extension/${manifest.icon}</Icon>
    <Properties>${property("Code.Engine", manifest.engines.vscode)}${property("Code.ExtensionKind", manifest.extensionKind.join(","))}</Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>${asset("Code.Manifest", "package.json")}${asset("Services.Content.Details", "README.md")}${asset("Services.Content.License", "LICENSE.txt")}${asset("Services.Icons.Default", manifest.icon)}</Assets>
</PackageManifest>
`;
}
