"""Errors for rust-analyzer."""

from __future__ import annotations

from typing import Final

from benchmarks.seeds.seed import FILLER_FILES, Project, create, delete, edit, move

FILES: Final = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n\n'
    '[dependencies]\nunits = { path = "units" }\n',
    "units/Cargo.toml": '[package]\nname = "units"\nversion = "0.1.0"\nedition = "2021"\n',
    "units/src/lib.rs": "pub fn in_metres(x: f64) -> f64 {\n    x / 100.0\n}\n",
    "src/lib.rs": "pub mod helpers;\npub mod modules;\npub mod report;\npub mod shapes;\npub mod store;\n",
    "src/modules/mod.rs": "".join(f"pub mod module_{number};\n" for number in range(FILLER_FILES)),
    "src/shapes.rs": """\
pub const OLD: &str = 3;

pub trait Measured {
    fn area(&self) -> f64;
}

#[derive(Clone, Debug)]
pub struct Shape {
    pub name: String,
    pub width: f64,
    pub height: f64,
}

impl Measured for Shape {
    fn area(&self) -> f64 {
        units::in_metres(self.width) * self.height
    }
}

impl Shape {
    pub fn scaled(&self, factor: f64) -> Shape {
        let name = self.name.clone();
        Shape { name, width: self.width * factor, height: self.height * factor }
    }
}

pub fn total(shapes: &[Shape]) -> f64 {
    let mut sum = 0.0;
    for shape in shapes {
        sum += shape.area();
    }
    sum
}

pub fn largest(shapes: &[Shape], least: f64) -> Option<&Shape> {
    let mut most = least;
    let mut found = None;
    for shape in shapes {
        if shape.area() > most {
            most = shape.area();
            found = Some(shape);
        }
    }
    found
}
""",
    "src/store.rs": """\
use std::collections::HashMap;
use std::fs;

use crate::shapes::{largest, Shape};

pub struct Store {
    pub path: String,
    pub items: HashMap<String, Shape>,
    pub order: Vec<Shape>,
}

impl Store {
    pub fn load(&mut self) -> usize {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        for line in text.lines() {
            let shape = Shape { name: line.to_string(), width: 1.0, height: 1.0 };
            self.order.push(shape.clone());
            self.items.insert(line.to_string(), shape);
        }
        self.items.len()
    }

    pub fn biggest(&self) -> Option<&Shape> {
        largest(&self.order, 1.0)
    }

    pub fn forget(&mut self, name: &str) -> bool {
        self.items.remove(name).is_some()
    }
}

pub fn broken(store: &Store) -> i32 {
    store.missing_since_long()
}
""",
    "src/report.rs": """\
use crate::helpers::padded;
use crate::shapes::{total, Measured, Shape};
use crate::store::Store;

pub fn line_of(shape: &Shape) -> String {
    padded(&shape.name, 20) + &shape.area().to_string()
}

pub fn report(store: &Store) -> String {
    let mut lines = Vec::new();
    for shape in &store.order {
        lines.push(line_of(shape));
    }
    lines.push(format!("total {}", total(&store.order)));
    lines.join("\\n")
}

pub fn main(args: &[String]) -> usize {
    let _first = older;
    args.len()
}
""",
    "src/helpers.rs": """\
pub fn padded(text: &str, width: usize) -> String {
    format!("{text:width$}")
}

pub fn unused(value: i32) -> i32 {
    value
}
""",
}
S, R, H, P, L = "src/shapes.rs", "src/report.rs", "src/helpers.rs", "src/store.rs", "src/lib.rs"

SEEDS: Final = [
    edit("unknown name", S, "let mut most = least", "let mut most = leest", "leest"),
    edit("unknown function", R, "&shape.area().to_string()", "&text_of(shape)", "text_of"),
    edit("unknown name in a loop", R, "in &store.order {", "in &orders {", "&orders"),
    edit("unknown field", P, "largest(&self.order", "largest(&self.orders", "self.orders"),
    edit("unknown method", S, "most = shape.area()", "most = shape.surface()", "shape.surface"),
    edit("unknown name of a module", P, "fs::read_to_string(", "fs::read_text(", "fs::read_text"),
    edit("unknown name of a dependency", S, "units::in_metres", "units::in_feet", "units::in_feet"),
    edit("unknown associated function", P, "HashMap<String, Shape>,", "HashMapp<String, Shape>,", "HashMapp"),
    edit("wrong type of an argument", R, "padded(&shape.name, 20)", 'padded(&shape.name, "20")', '"20"'),
    edit("wrong type of an argument of a dependency", S, "in_metres(self.width)", "in_metres(1)", "in_metres(1)"),
    edit("an argument less", R, "padded(&shape.name, 20)", "padded(&shape.name)", "padded(&shape.name)"),
    edit("an argument more", R, "total(&store.order))", "total(&store.order, 2))", "order, 2)"),
    edit(
        "wrong return value", P, "        self.items.len()", "        self.items.is_empty()", "self.items.is_empty"
    ),
    edit("no return value", S, "    sum\n}", "    sum;\n}", "pub fn total"),
    edit(
        "wrong type of a variable",
        S,
        "let mut most = least",
        "let mut most: bool = least",
        "most: bool",
        "> most",
        "most = shape.area",
    ),
    edit("wrong value in a map", P, "line.to_string(), shape)", "line.to_string(), 1)", "to_string(), 1)"),
    edit("wrong key", P, "insert(line.to_string(), shape)", "insert(1, shape)", "insert(1"),
    edit("wrong operator", R, "    args.len()", "    args.len() + true", "+ true"),
    edit("wrong type of a field", P, "width: 1.0, height", "width: true, height", "width: true"),
    edit("a field less", P, "width: 1.0, height: 1.0", "width: 1.0", "Shape { name"),
    edit("a field more", P, "width: 1.0, height", "depth: 1.0, width: 1.0, height", "depth"),
    edit("unknown type", H, "value: i32", "value: Int", "Int"),
    edit("unknown module", R, "use crate::store::Store", "use crate::stores::Store", "crate::stores"),
    edit("unknown name in a use", R, "{total, Measured", "{sum_of, total, Measured", "sum_of"),
    edit("call of what is no function", R, "    args.len()", "    let n = 1;\n    n()", "    n()"),
    edit("an immutable variable is changed", S, "let mut sum", "let sum", "sum +="),
    edit("two errors", H, "    value\n", "    valu\n        + unknown\n", "    valu", "+ unknown"),
    edit("an error below an old one", S, "&str = 3;\n", '&str = 3;\npub const FRESH: i32 = "3";\n', "FRESH"),
    edit("an error in the line of an old one", R, "= older;", "= (older, oldest);", "oldest"),
    edit(
        "lines above an old error",
        P,
        "pub fn broken",
        "pub fn added(x: i32) -> String {\n    x\n}\n\npub fn broken",
        "    x\n".rstrip(),
    ),
    edit(
        "a method of a trait less",
        S,
        "    fn area(&self) -> f64 {\n        units",
        "    fn size(&self) -> f64 {\n        units",
        "impl Measured for",
        "fn size",
    ),
    edit("another name of a function", S, "pub fn total(", "pub fn sum_of(", "src/report.rs: {total"),
    edit(
        "a parameter more",
        S,
        "total(shapes: &[Shape])",
        "total(shapes: &[Shape], unit: &str)",
        "src/report.rs: total(&store",
    ),
    edit(
        "another type of a parameter",
        H,
        "width: usize",
        "width: &str",
        "src/report.rs: padded(&",
        '"{text:width$}"',
    ),
    edit(
        "another type of a result",
        H,
        'String {\n    format!("{text:width$}")',
        "usize {\n    width + text.len()",
        "src/report.rs: padded(&",
    ),
    edit(
        "another name of a type",
        P,
        "pub struct Store {",
        "pub struct Shop {",
        "impl Store",
        "&Store)",
        "src/report.rs: store::Store",
    ),
    edit(
        "another name of a field",
        P,
        "pub order: Vec",
        "pub orders: Vec",
        "self.order.push",
        "&self.order, 1.0",
        "src/report.rs: in &store.order",
        "src/report.rs: total(&store",
    ),
    edit(
        "another type of a dependency's parameter",
        "units/src/lib.rs",
        "x: f64) -> f64 {\n    x / 100.0",
        "x: i64) -> f64 {\n    x as f64",
        "src/shapes.rs: in_metres",
    ),
    edit("a private function", H, "pub fn padded", "fn padded", "src/report.rs: helpers::padded"),
    create("a new file without a module", "src/fresh.rs", "pub fn fresh() -> i32 {\n    1\n}\n"),
    delete("src/helpers.rs", "src/lib.rs: helpers", "src/report.rs: helpers::padded"),
    move("src/helpers.rs", "src/tools.rs", "src/lib.rs: helpers", "src/report.rs: helpers::padded"),
    edit("harmless: lines above old errors", S, "pub const OLD", "// A note.\n\npub const OLD"),
    edit("harmless: another body", H, "{text:width$}", "{text:>width$}"),
]

RUST: Final = Project(
    "Rust",
    "rust-analyzer",
    FILES,
    SEEDS,
    "src/modules/module_NUMBER.rs",
    "pub fn value_NUMBER(x: i32, name: &str) -> i32 {\n"
    "    if name.is_empty() {\n        return x * 2;\n    }\n    x\n}\n\n",
)
