"""Errors for typescript-language-server."""

from __future__ import annotations

from typing import Final

from benchmarks.seeds.seed import Project, create, delete, edit, move

FILES: Final = {
    "tsconfig.json": """\
{
  "compilerOptions": {
    "strict": true,
    "target": "es2022",
    "module": "esnext",
    "moduleResolution": "bundler",
    "types": []
  }
}
""",
    "shapes.ts": """\
export const old: string = 3;

export interface Shape {
  name: string;
  width: number;
  height: number;
}

export class Circle implements Shape {
  constructor(
    public name: string,
    public width: number,
    public height: number,
  ) {}

  area(): number {
    return this.width * this.width * 3.14;
  }
}

export function area(shape: Shape): number {
  return shape.width * shape.height;
}

export function total(shapes: Shape[]): number {
  return shapes.reduce((sum, shape) => sum + area(shape), 0);
}

export function largest(shapes: Shape[], least = 0): Shape | undefined {
  let found: Shape | undefined;
  for (const shape of shapes) {
    if (area(shape) > least) {
      least = area(shape);
      found = shape;
    }
  }
  return found;
}
""",
    "store.ts": """\
import { largest, Shape } from "./shapes";

export class Store {
  items = new Map<string, Shape>();

  constructor(private readonly text: string) {}

  load(): number {
    for (const entry of JSON.parse(this.text) as Shape[]) {
      const { name, width, height } = entry;
      this.items.set(name, { name, width, height });
    }
    return this.items.size;
  }

  biggest(): Shape | undefined {
    return largest([...this.items.values()], 1);
  }

  forget(name: string): boolean {
    return this.items.delete(name);
  }
}

export function broken(store: Store): number {
  return store.missingSinceLong();
}
""",
    "report.ts": """\
import { padded } from "./helpers";
import { area, Circle, Shape, total } from "./shapes";
import { Store } from "./store";

export function lineOf(shape: Shape): string {
  return padded(shape.name, 20) + area(shape).toFixed(2);
}

export function report(store: Store): string {
  const shapes: Shape[] = [...store.items.values(), new Circle("ring", 2, 2)];
  const lines = shapes.map((shape) => lineOf(shape));
  lines.push(`total ${total(shapes)}`);
  return lines.join("\\n");
}

export function main(args: string[]): number {
  report(new Store(args[0] ?? older));
  return args.length;
}
""",
    "helpers.ts": """\
export function padded(text: string, width: number): string {
  return text.padEnd(width);
}

export function unused(value: number): number {
  return value;
}
""",
}

SEEDS: Final = [
    edit("unknown name", "shapes.ts", "shape.width * shape.height", "shape.width * heigth", "* heigth"),
    edit("unknown function", "report.ts", "area(shape).toFixed", "areaOf(shape).toFixed", "areaOf"),
    edit("unknown name in a callback", "report.ts", "lineOf(shape));", "lineOf(shap));", "lineOf(shap))"),
    edit("unknown member", "shapes.ts", "shape.width * shape.height", "shape.width * shape.depth", "shape.depth"),
    edit(
        "unknown member of this", "store.ts", "return this.items.size", "return this.entries.size", "this.entries"
    ),
    edit("unknown method", "store.ts", "this.items.delete(", "this.items.remove(", "items.remove"),
    edit("unknown member of a global", "store.ts", "JSON.parse(", "JSON.read(", "JSON.read"),
    edit("wrong type of an argument", "report.ts", "padded(shape.name, 20)", 'padded(shape.name, "20")', '"20"'),
    edit("wrong order of arguments", "report.ts", "padded(shape.name, 20)", "padded(20, shape.name)", "padded(20"),
    edit("an argument less", "report.ts", "padded(shape.name, 20)", "padded(shape.name)", "padded(shape.name)"),
    edit("an argument more", "report.ts", "total(shapes)}", "total(shapes, 2)}", "total(shapes, 2)"),
    edit("wrong return value", "store.ts", "return this.items.size", "return this.items", "return this.items;"),
    edit("no return value", "store.ts", "return this.items.delete(name)", "this.items.delete(name)", "forget("),
    edit("wrong assignment", "shapes.ts", "found = shape;", "found = shape.name;", "found = shape.name"),
    edit("wrong value in a map", "store.ts", "{ name, width, height });", "1);", "set(name, 1)"),
    edit("a member less", "store.ts", "{ name, width, height });", "{ name, width });", "{ name, width });"),
    edit("a member more", "store.ts", "{ name, width, height });", "{ name, width, height, x: 1 });", "x: 1"),
    edit(
        "undefined is not handled",
        "store.ts",
        "return this.items.size",
        "return this.biggest().width",
        "biggest().",
    ),
    edit(
        "a constant is changed",
        "store.ts",
        "this.items.set(name",
        "name = '';\n      this.items.set(name",
        "name = ''",
    ),
    edit(
        "a read-only member is changed",
        "store.ts",
        "    return this.items.size",
        "    this.text = '';\n    return this.items.size",
        "this.text = ",
    ),
    edit("a private member", "report.ts", "lines.join(", "store.text + lines.join(", "store.text"),
    edit("wrong operator", "report.ts", "return args.length", "return args * 2", "args * 2"),
    edit("unknown type", "helpers.ts", "value: number", "value: Int", "Int"),
    edit(
        "unknown module",
        "report.ts",
        'import { Store } from "./store"',
        'import { Store } from "./stores"',
        "./stores",
    ),
    edit("unknown name of a module", "report.ts", "Circle, Shape, total", "Circle, Shape, sumOf, total", "sumOf"),
    edit("call of what is no function", "report.ts", "lines.join(", "lines(", "lines("),
    edit(
        "two errors", "helpers.ts", "  return value;", "  return valu +\n    unknown;", "return valu", "    unknown"
    ),
    edit(
        "an error below an old one",
        "shapes.ts",
        "string = 3;\n",
        'string = 3;\nexport const fresh: number = "3";\n',
        "fresh",
    ),
    edit(
        "an error in the line of an old one",
        "report.ts",
        "args[0] ?? older)",
        "args[0] ?? older, oldest)",
        "oldest",
    ),
    edit(
        "lines above an old error",
        "store.ts",
        "export function broken",
        "export function added(x: number): string {\n  return x;\n}\n\nexport function broken",
        "return x;",
    ),
    edit(
        "another name of a function",
        "shapes.ts",
        "export function total(",
        "export function sumOf(",
        "report.ts: import { area",
    ),
    edit(
        "a parameter more",
        "shapes.ts",
        "total(shapes: Shape[])",
        "total(shapes: Shape[], unit: string)",
        "report.ts: total(shapes)}",
    ),
    edit(
        "another type of a parameter",
        "shapes.ts",
        "total(shapes: Shape[])",
        "total(shapes: string[])",
        "area(shape), 0)",
        "report.ts: total(shapes)",
    ),
    edit(
        "a member more that is needed",
        "shapes.ts",
        "  name: string;\n  width",
        "  name: string;\n  color: string;\n  width",
        "class Circle",
        "store.ts: this.items.set",
        "report.ts: const shapes",
    ),
    edit(
        "another type of a result",
        "shapes.ts",
        "area(shape: Shape): number {",
        "area(shape: Shape): number | undefined {",
        "sum + area(shape)",
        "if (area(shape) > least)",
        "least = area(shape)",
        "report.ts: area(shape).toFixed",
    ),
    edit(
        "another name of a class",
        "store.ts",
        "export class Store {",
        "export class Shop {",
        "broken(store: Store)",
        "report.ts: import { Store",
    ),
    edit(
        "another name of a member",
        "store.ts",
        "  items = new Map",
        "  entries = new Map",
        "this.items.set",
        "return this.items.size",
        "largest([",
        "this.items.delete",
        "report.ts: store.items",
    ),
    edit(
        "no export any more",
        "helpers.ts",
        "export function padded",
        "function padded",
        "report.ts: import { padded",
    ),
    create(
        "a new file",
        "fresh.ts",
        'import { total } from "./shapes";\n\nexport const fresh = total(1) + nothing;\n',
        "fresh.ts: fresh =",
    ),
    create(
        "a new file without errors",
        "clean.ts",
        'import { total } from "./shapes";\n\nexport const clean = total([]);\n',
    ),
    delete("helpers.ts", "report.ts: ./helpers"),
    move("helpers.ts", "tools.ts", "report.ts: ./helpers"),
    edit(
        "harmless: lines above old errors",
        "shapes.ts",
        "export const old",
        "// A note.\n// Another.\n\nexport const old",
    ),
    edit("harmless: another body", "helpers.ts", "text.padEnd(width)", "text.padStart(width)"),
]

TYPESCRIPT: Final = Project(
    "TypeScript",
    "typescript-language-server",
    FILES,
    SEEDS,
    "modules/moduleNUMBER.ts",
    'export function valueNUMBER(x: number, name = "a"): number {\n'
    "  // Twice.\n"
    "  if (name) {\n    return x * 2;\n  }\n  return x;\n}\n\n",
)
