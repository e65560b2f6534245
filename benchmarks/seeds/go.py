"""Errors for gopls."""

from __future__ import annotations

from typing import Final

from benchmarks.seeds.seed import Project, create, delete, edit, move

FILES: Final = {
    "go.mod": "module example.com/shop\n\ngo 1.21\n",
    "shapes/shapes.go": """\
package shapes

var Old string = 3

// Measured has an area.
type Measured interface {
	Area() float64
}

// Shape is a rectangle.
type Shape struct {
	Name   string
	Width  float64
	Height float64
}

// Area is the area.
func (s Shape) Area() float64 {
	return s.Width * s.Height
}

// Scaled is another size.
func (s Shape) Scaled(factor float64) Shape {
	return Shape{s.Name, s.Width * factor, s.Height * factor}
}

// Total is the sum of areas.
func Total(all []Shape) float64 {
	sum := 0.0
	for _, one := range all {
		sum += one.Area()
	}
	return sum
}

// Largest is the largest one.
func Largest(all []Shape, least float64) (Shape, bool) {
	var found Shape
	ok := false
	for _, one := range all {
		if one.Area() > least {
			least = one.Area()
			found, ok = one, true
		}
	}
	return found, ok
}

var _ Measured = Shape{}
""",
    "store/store.go": """\
package store

import (
	"encoding/json"
	"os"

	"example.com/shop/shapes"
)

// Store has shapes by name.
type Store struct {
	Path  string
	Items map[string]shapes.Shape
}

// Load reads the shapes.
func (s *Store) Load() (int, error) {
	data, err := os.ReadFile(s.Path)
	if err != nil {
		return 0, err
	}
	var entries []shapes.Shape
	if err := json.Unmarshal(data, &entries); err != nil {
		return 0, err
	}
	for _, one := range entries {
		s.Items[one.Name] = one
	}
	return len(s.Items), nil
}

// Biggest is the largest shape.
func (s *Store) Biggest() (shapes.Shape, bool) {
	all := []shapes.Shape{}
	for _, one := range s.Items {
		all = append(all, one)
	}
	return shapes.Largest(all, 1)
}

// Broken is wrong.
func Broken(s *Store) int {
	return s.MissingSinceLong()
}
""",
    "report/report.go": """\
package report

import (
	"fmt"
	"strings"

	"example.com/shop/shapes"
	"example.com/shop/store"
)

// LineOf is a line.
func LineOf(one shapes.Shape) string {
	return Padded(one.Name, 20) + fmt.Sprint(one.Area())
}

// Report is the text.
func Report(s *store.Store) string {
	all := []shapes.Shape{{Name: "ring", Width: 2, Height: 2}}
	for _, one := range s.Items {
		all = append(all, one)
	}
	lines := []string{}
	for _, one := range all {
		lines = append(lines, LineOf(one))
	}
	lines = append(lines, fmt.Sprintf("total %f", shapes.Total(all)))
	return strings.Join(lines, "\\n")
}

// Main is wrong.
func Main(args []string) int {
	fmt.Println(args[0], older)
	return len(args)
}
""",
    "report/helpers.go": """\
package report

import "strings"

// Padded fills up a text.
func Padded(text string, width int) string {
	return text + strings.Repeat(" ", width-len(text))
}

// Unused does nothing.
func Unused(value int) int {
	return value
}
""",
}
S, R, H, P = "shapes/shapes.go", "report/report.go", "report/helpers.go", "store/store.go"

SEEDS: Final = [
    edit("unknown name", S, "return s.Width * s.Height", "return s.Width * heigth", "* heigth"),
    edit("unknown function", R, "fmt.Sprint(one.Area())", "textOf(one.Area())", "textOf"),
    edit("unknown name in a loop", R, "range all {", "range everything {", "everything"),
    edit("unknown member", S, "return s.Width * s.Height", "return s.Width * s.Depth", "s.Depth"),
    edit("unknown method", S, "least = one.Area()", "least = one.Surface()", "one.Surface"),
    edit("unknown name of a package", R, "strings.Join(", "strings.Concat(", "strings.Concat"),
    edit("a name that is not exported", P, "shapes.Largest(", "shapes.largest(", "shapes.largest"),
    edit("wrong type of an argument", R, "Padded(one.Name, 20)", 'Padded(one.Name, "20")', '"20"'),
    edit("wrong order of arguments", R, "Padded(one.Name, 20)", "Padded(20, one.Name)", "Padded(20"),
    edit("an argument less", R, "Padded(one.Name, 20)", "Padded(one.Name)", "Padded(one.Name)"),
    edit("an argument more", R, "shapes.Total(all))", "shapes.Total(all, 2))", "Total(all, 2)"),
    edit("wrong return value", P, "return len(s.Items), nil", "return s.Items, nil", "return s.Items, nil"),
    edit("a return value less", P, "return len(s.Items), nil", "return len(s.Items)", "return len(s.Items)"),
    edit("no return", S, "\treturn sum\n}", "} // total", "} // total"),
    edit("wrong assignment", S, "found, ok = one, true", "found, ok = one.Name, true", "one.Name, true"),
    edit("wrong value in a map", P, "s.Items[one.Name] = one", "s.Items[one.Name] = 1", "= 1"),
    edit("wrong key", P, "s.Items[one.Name] = one", "s.Items[1] = one", "s.Items[1]"),
    edit(
        "unused variable", P, "\tall := []shapes.Shape{}\n", "\tall := []shapes.Shape{}\n\tleft := 1\n", "left := 1"
    ),
    edit("unused package", H, 'import "strings"', 'import (\n\t"os"\n\t"strings"\n)', '"os"'),
    edit("wrong operator", R, "return len(args)", "return args * 2", "args * 2"),
    edit(
        "wrong types of an operator",
        R,
        "Padded(one.Name, 20) + fmt.Sprint(one.Area())",
        "Padded(one.Name, 20) + one.Area()",
        "+ one.Area()",
    ),
    edit("unknown type", H, "value int", "value Int", "Int"),
    edit(
        "unknown package",
        H,
        'import "strings"',
        'import (\n\t"strings"\n\n\t_ "example.com/shop/nothing"\n)',
        "shop/nothing",
    ),
    edit("call of what is no function", R, "strings.Join(lines, ", "lines(lines, ", "lines(lines", '"strings"'),
    edit("a name twice", S, "\tsum := 0.0\n", "\tsum := 0.0\n\tsum := 1.0\n", "sum := 1.0"),
    edit("two errors", H, "\treturn value", "\treturn valu +\n\t\tunknown", "return valu +", "\t\tunknown"),
    edit("an error below an old one", S, "string = 3\n", 'string = 3\nvar Fresh int = "3"\n', "Fresh"),
    edit("an error in the line of an old one", R, "args[0], older)", "args[0], older, oldest)", "oldest"),
    edit(
        "lines above an old error",
        P,
        "// Broken is",
        "// Added is new.\nfunc Added(x int) string {\n\treturn x\n}\n\n// Broken is",
        "return x",
    ),
    edit(
        "an interface is not implemented",
        S,
        "func (s Shape) Area() float64 {",
        "func (s Shape) Area() int {",
        "return s.Width * s.Height",
        "sum += one.Area()",
        "if one.Area()",
        "least = one.Area()",
        "var _ Measured",
    ),
    edit("another name of a function", S, "func Total(", "func SumOf(", "report/report.go: shapes.Total"),
    edit(
        "a parameter more",
        S,
        "func Total(all []Shape)",
        "func Total(all []Shape, unit string)",
        "report/report.go: shapes.Total",
    ),
    edit(
        "another type of a parameter",
        S,
        "least float64)",
        "least string)",
        "> least",
        "least = one",
        "store/store.go: shapes.Largest",
    ),
    edit(
        "a member less",
        S,
        "\tName   string\n",
        "",
        "return Shape{s.Name",
        "store/store.go: one.Name",
        "report/report.go: one.Name",
        "report/report.go: Name:",
    ),
    edit(
        "another type of a result",
        H,
        'string {\n\treturn text + strings.Repeat(" ", width-len(text))',
        'int {\n\treturn len(text + strings.Repeat(" ", width-len(text)))',
        "report/report.go: return Padded",
    ),
    edit(
        "another name of a type",
        P,
        "type Store struct",
        "type Shop struct",
        "func (s *Store) Load",
        "func (s *Store) Biggest",
        "func Broken",
        "report/report.go: s *store.Store",
    ),
    edit(
        "another name of a member",
        P,
        "Items map",
        "Entries map",
        "s.Items[one",
        "return len(s.Items)",
        "range s.Items",
        "report/report.go: range s.Items",
    ),
    create(
        "a new file",
        "report/fresh.go",
        "package report\n\nvar Fresh = Padded(1, 2) + nothing\n",
        "report/fresh.go: Fresh",
    ),
    create("a new file without errors", "report/clean.go", 'package report\n\nvar Clean = Padded("a", 2)\n'),
    create(
        "a new file with a name that exists",
        "report/again.go",
        "package report\n\nfunc Unused() {}\n",
        "report/helpers.go: func Unused",
        "report/again.go: func Unused",
    ),
    delete("report/helpers.go", "report/report.go: Padded("),
    move("report/helpers.go", "report/tools.go"),
    edit("harmless: lines above old errors", S, "package shapes\n", "package shapes\n\n// A note.\n"),
    edit("harmless: another body", H, "width-len(text)", "width-len(text)-0"),
]

GO: Final = Project(
    "Go",
    "gopls",
    FILES,
    SEEDS,
    "modules/module_NUMBER.go",
    "// ValueNUMBER is twice x.\nfunc ValueNUMBER(x int, name string) int {\n"
    '\tif name != "" {\n\t\treturn x * 2\n\t}\n\treturn x\n}\n\n',
    head="package modules\n\n",
)
