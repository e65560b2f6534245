"""Errors for clangd."""

from __future__ import annotations

from typing import Final

from benchmarks.seeds.seed import Project, create, delete, edit, move

FILES: Final = {
    "shapes.h": """\
#ifndef SHAPES_H
#define SHAPES_H

struct shape {
  const char *name;
  double width;
  double height;
};

double area(const struct shape *one);
double total(const struct shape *all, int count);
const struct shape *largest(const struct shape *all, int count, double least);

#endif
""",
    "shapes.c": """\
#include "shapes.h"

int old = older;

double area(const struct shape *one) { return one->width * one->height; }

double total(const struct shape *all, int count) {
  double sum = 0.0;
  for (int i = 0; i < count; i++) {
    sum += area(&all[i]);
  }
  return sum;
}

const struct shape *largest(const struct shape *all, int count, double least) {
  const struct shape *found = 0;
  for (int i = 0; i < count; i++) {
    if (area(&all[i]) > least) {
      least = area(&all[i]);
      found = &all[i];
    }
  }
  return found;
}
""",
    "store.h": """\
#ifndef STORE_H
#define STORE_H

#include "shapes.h"

struct store {
  struct shape items[100];
  int count;
};

int add(struct store *to, const char *name, double width, double height);
const struct shape *biggest(const struct store *in);

#endif
""",
    "store.c": """\
#include "store.h"

int add(struct store *to, const char *name, double width, double height) {
  struct shape one = {name, width, height};
  if (to->count == 100) {
    return 0;
  }
  to->items[to->count] = one;
  to->count += 1;
  return 1;
}

const struct shape *biggest(const struct store *in) {
  return largest(in->items, in->count, 1.0);
}

int broken(struct store *in) { return in->missing_since_long; }
""",
    "helpers.h": "int padded(char *into, const char *text, int width);\nint unused(int value);\n",
    "helpers.c": """\
#include "helpers.h"

int padded(char *into, const char *text, int width) {
  int i = 0;
  while (i < width) {
    into[i] = text[i];
    i++;
  }
  return i;
}

int unused(int value) { return value; }
""",
    "report.c": """\
#include "helpers.h"
#include "shapes.h"
#include "store.h"

int line_of(char *into, const struct shape *one) {
  int used = padded(into, one->name, 20);
  return used + (int)area(one);
}

double report(struct store *in) {
  char line[100];
  int used = 0;
  for (int i = 0; i < in->count; i++) {
    used += line_of(line, &in->items[i]);
  }
  return total(in->items, in->count) + used;
}

int last(void) { return oldest; }
""",
}

SEEDS: Final = [
    edit("unknown name", "shapes.c", "one->width * one->height", "one->width * heigth", "* heigth"),
    edit("unknown function", "report.c", "(int)area(one)", "area_of(one)", "area_of"),
    edit("unknown name in a loop", "report.c", "i < in->count", "i < counted", "counted"),
    edit("unknown member", "shapes.c", "one->width * one->height", "one->width * one->depth", "one->depth"),
    edit("unknown member of another struct", "store.c", "to->count == 100", "to->number == 100", "to->number"),
    edit("an arrow for a dot", "shapes.c", "one->width * one->height", "one->width * one.height", "one.height"),
    edit(
        "wrong type of an argument",
        "report.c",
        "padded(into, one->name, 20)",
        "padded(into, one->name, *one)",
        "name, *one",
    ),
    edit("a pointer for a number", "report.c", "one->name, 20)", "one->name, into)", "one->name, into"),
    edit(
        "wrong order of arguments",
        "report.c",
        "padded(into, one->name, 20)",
        "padded(20, into, one->name)",
        "padded(20",
    ),
    edit(
        "an argument less",
        "report.c",
        "padded(into, one->name, 20)",
        "padded(into, one->name)",
        "padded(into, one->name)",
    ),
    edit(
        "an argument more", "report.c", "total(in->items, in->count)", "total(in->items, in->count, 2)", "count, 2)"
    ),
    edit("wrong return value", "store.c", "return 0;", "return one;", "return one"),
    edit("wrong type of an element", "store.c", "= one;", "= name;", "= name;"),
    edit("wrong assignment", "shapes.c", "found = &all[i]", "found = all[i]", "found = all[i]"),
    edit("a number for a pointer", "shapes.c", "*found = 0;", "*found = 0.5;", "0.5"),
    edit("wrong operator", "store.c", "to->count += 1;", "to->items += 1;", "to->items += 1"),
    edit("a value that cannot be one", "store.c", "{name, width, height}", "{name, *to, height}", "*to, height"),
    edit(
        "a constant is changed",
        "shapes.c",
        "  return found;",
        "  all[0].width = 1.0;\n  return found;",
        "all[0].width",
    ),
    edit("unknown type", "helpers.c", "int unused(int value) {", "int unused(integer value) {", "integer"),
    edit(
        "unknown header",
        "report.c",
        '#include "store.h"\n',
        '#include "store.h"\n#include "stores.h"\n',
        "stores.h",
    ),
    edit("call of what is no function", "report.c", "return used + (int)", "return used() + (int)", "used()"),
    edit("index of what has none", "report.c", "&in->items[i]", "&in[i]->items[i]", "&in[i]->"),
    edit("a name twice", "shapes.c", "double sum = 0.0;", "double sum = 0.0;\n  int sum = 1;", "int sum"),
    edit("break outside of a loop", "helpers.c", "  return i;", "  break;\n  return i;", "break"),
    edit("a size that is no constant", "report.c", "char line[100]", "char line[one]", "line[one]"),
    edit(
        "two errors",
        "helpers.c",
        "{ return value; }",
        "{\n  return valu +\n    unknown;\n}",
        "valu +",
        "    unknown",
    ),
    edit(
        "an error below an old one",
        "shapes.c",
        "int old = older;\n",
        'int old = older;\nint fresh = "3" * 2;\n',
        "fresh",
    ),
    edit("an error in the line of an old one", "report.c", "return oldest;", "return oldest + eldest;", "eldest"),
    edit(
        "lines above an old error",
        "store.c",
        "int broken",
        "int added(struct store *in) {\n  return *in;\n}\n\nint broken",
        "return *in",
    ),
    edit("another name of a function", "shapes.h", "double total(", "double sum_of(", "report.c: total(in"),
    edit(
        "a parameter more",
        "helpers.h",
        "int width);",
        "int width, char fill);",
        "helpers.c: int padded",
        "report.c: padded(",
    ),
    edit(
        "another type of a parameter",
        "shapes.h",
        "double area(const struct shape *one)",
        "double area(struct shape one)",
        "shapes.c: double area",
        "report.c: area(one)",
        "shapes.c: sum += area",
        "shapes.c: if (area",
        "shapes.c: least = area",
    ),
    edit(
        "another type of a result",
        "helpers.h",
        "int padded(",
        "struct pad padded(",
        "helpers.c: int padded",
        "report.c: padded(",
    ),
    edit("another name of a member", "shapes.h", "double height;", "double length;", "shapes.c: one->height"),
    edit(
        "another name of a member that another file uses",
        "shapes.h",
        "const char *name;",
        "const char *title;",
        "report.c: one->name",
    ),
    create(
        "a new file",
        "fresh.c",
        '#include "shapes.h"\n\ndouble fresh(void) { return area(1, 2) + nothing; }\n',
        "fresh.c: fresh(void)",
    ),
    create(
        "a new file without errors",
        "clean.c",
        '#include "shapes.h"\n\ndouble clean(void) { return total(0, 0); }\n',
    ),
    delete("helpers.h", "helpers.c: #include", "report.c: #include", "report.c: padded(into"),
    move("helpers.h", "tools.h", "helpers.c: #include", "report.c: #include", "report.c: padded(into"),
    edit("harmless: lines above old errors", "shapes.c", "int old", "// A note.\n\nint old"),
    edit("harmless: another body", "helpers.c", "{ return value; }", "{ return value + 1; }"),
]

C: Final = Project(
    "C",
    "clangd",
    FILES,
    SEEDS,
    "modules/module_NUMBER.c",
    "int value_NUMBER(int x, const char *name) {\n  if (name[0]) {\n    return x * 2;\n  }\n  return x;\n}\n\n",
)
