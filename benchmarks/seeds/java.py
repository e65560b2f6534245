"""Errors for jdtls."""

from __future__ import annotations

from typing import Final

from benchmarks.seeds.seed import Project, create, delete, edit, move

FILES: Final = {
    "src/shop/Shape.java": """\
package shop;

public class Shape implements Measured {
    static String old = 3;
    final String name;
    double width;
    double height;

    public Shape(String name, double width, double height) {
        this.name = name;
        this.width = width;
        this.height = height;
    }

    @Override
    public double area() {
        return width * height;
    }

    public Shape scaled(double factor) {
        return new Shape(name, width * factor, height * factor);
    }
}
""",
    "src/shop/Measured.java": """\
package shop;

public interface Measured {
    double area();
}
""",
    "src/shop/Shapes.java": """\
package shop;

import java.util.List;

public class Shapes {
    public static double total(List<Shape> shapes) {
        double sum = 0;
        for (Shape shape : shapes) {
            sum += shape.area();
        }
        return sum;
    }

    public static Shape largest(List<Shape> shapes, double least) {
        Shape found = null;
        for (Shape shape : shapes) {
            if (shape.area() > least) {
                least = shape.area();
                found = shape;
            }
        }
        return found;
    }
}
""",
    "src/shop/Store.java": """\
package shop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

public class Store {
    final Map<String, Shape> items = new HashMap<>();
    private int loads;

    public int load(String text) {
        for (String line : text.split(",")) {
            Shape shape = new Shape(line, 1.0, 1.0);
            items.put(line, shape);
        }
        loads += 1;
        return items.size();
    }

    public Shape biggest() {
        return Shapes.largest(new ArrayList<>(items.values()), 1.0);
    }

    public int broken() {
        return missingSinceLong();
    }
}
""",
    "src/shop/Report.java": """\
package shop;

import java.util.ArrayList;
import java.util.List;

public class Report {
    static String lineOf(Shape shape) {
        return Helpers.padded(shape.name, 20) + shape.area();
    }

    static String report(Store store) {
        List<Shape> shapes = new ArrayList<>(store.items.values());
        List<String> lines = new ArrayList<>();
        for (Shape shape : shapes) {
            lines.add(lineOf(shape));
        }
        lines.add("total " + Shapes.total(shapes));
        return String.join(",", lines);
    }

    static int count(String[] args) {
        System.out.println(older);
        return args.length;
    }
}
""",
    "src/shop/Helpers.java": """\
package shop;

public class Helpers {
    public static String padded(String text, int width) {
        return " ".repeat(width - text.length()) + text;
    }

    public static int unused(int value) {
        return value;
    }
}
""",
}
H, M, R, S, T, P = (
    f"src/shop/{name}.java" for name in ("Helpers", "Measured", "Report", "Shape", "Shapes", "Store")
)

SEEDS: Final = [
    edit("unknown name", S, "return width * height", "return width * heigth", "* heigth"),
    edit("unknown method", R, "shape.area();", "shape.surface();", "shape.surface"),
    edit("unknown method of this class", R, "lines.add(lineOf(shape))", "lines.add(textOf(shape))", "textOf"),
    edit("unknown name in a loop", R, ": shapes) {", ": all) {", ": all)"),
    edit("unknown member", R, "shape.name, 20", "shape.title, 20", "shape.title"),
    edit("unknown class", P, "new HashMap<>()", "new HashMapp<>()", "HashMapp"),
    edit("unknown method of a library", R, "String.join(", "String.concatenated(", "String.concatenated"),
    edit("wrong type of an argument", R, "shape.name, 20", 'shape.name, "20"', '"20"'),
    edit("wrong order of arguments", R, "shape.name, 20", "20, shape.name", "20, shape.name"),
    edit("an argument less", R, "shape.name, 20", "shape.name", "padded(shape.name)"),
    edit("an argument more", R, "Shapes.total(shapes)", "Shapes.total(shapes, 2)", "shapes, 2)"),
    edit("wrong return value", P, "return items.size()", "return items", "return items;"),
    edit("no return value", P, "        return items.size();\n", "", "int load("),
    edit("wrong assignment", T, "found = shape;", "found = shape.name;", "found = shape.name"),
    edit("wrong value in a map", P, "items.put(line, shape)", "items.put(line, 1)", "put(line, 1)"),
    edit("wrong key", P, "items.put(line, shape)", "items.put(1, shape)", "put(1"),
    edit("wrong operator", R, "return args.length", "return args * 2", "args * 2"),
    edit("a lossy conversion", P, "return items.size()", "return 1.5", "return 1.5"),
    edit(
        "a final member is changed",
        S,
        "return width * height",
        'name = "";\n        return width * height',
        'name = ""',
    ),
    edit("a private member", R, "lines.add(lineOf", "lines.add(store.loads + lineOf", "store.loads"),
    edit(
        "an instance member in a static method", R, "return args.length", "return this.hashCode()", "this.hashCode"
    ),
    edit("unknown type", H, "int value)", "Int value)", "Int value"),
    edit(
        "unknown import",
        R,
        "import java.util.List;\n",
        "import java.util.List;\nimport java.util.Lists;\n",
        "java.util.Lists",
    ),
    edit(
        "an exception is not handled",
        P,
        "        loads += 1;",
        "        Thread.sleep(1);\n        loads += 1;",
        "Thread.sleep",
    ),
    edit("a name twice", T, "double sum = 0;", "double sum = 0;\n        int sum = 1;", "int sum"),
    edit("a variable without a value", T, "Shape found = null;", "Shape found;", "return found"),
    edit(
        "unreachable code",
        H,
        "        return value;\n",
        "        return value;\n        value += 1;\n",
        "value += 1",
    ),
    edit(
        "two errors",
        H,
        "        return value;",
        "        return valu +\n            unknown;",
        "return valu",
        "    unknown",
    ),
    edit("an error below an old one", S, "old = 3;\n", 'old = 3;\n    static int fresh = "3";\n', "fresh"),
    edit("an error in the line of an old one", R, "println(older)", "println(older + oldest)", "oldest"),
    edit(
        "lines above an old error",
        P,
        "    public int broken",
        "    public int added(String x) {\n        return x;\n    }\n\n    public int broken",
        "return x",
    ),
    edit(
        "a method of an interface more",
        M,
        "double area();",
        "double area();\n\n    String color();",
        "src/shop/Shape.java: class Shape",
    ),
    edit("another name of a method", T, "double total(", "double sumOf(", "src/shop/Report.java: Shapes.total"),
    edit(
        "a parameter more",
        T,
        "total(List<Shape> shapes)",
        "total(List<Shape> shapes, String unit)",
        "src/shop/Report.java: Shapes.total",
    ),
    edit(
        "another type of a parameter",
        T,
        "double least)",
        "String least)",
        "> least",
        "least = shape",
        "src/shop/Store.java: Shapes.largest",
    ),
    edit("another type of a result", M, "double area();", "int area();", "src/shop/Shape.java: public double area"),
    edit(
        "another name of a member",
        P,
        "Shape> items =",
        "Shape> entries =",
        "items.put",
        "return items.size",
        "items.values(",
        "src/shop/Report.java: store.items",
    ),
    edit(
        "another name of a member of another file",
        S,
        "    final String name;",
        "    final String title;",
        "this.name",
        "new Shape(name",
        "src/shop/Report.java: shape.name",
    ),
    edit(
        "a private method",
        H,
        "public static String padded",
        "private static String padded",
        "src/shop/Report.java: Helpers.padded",
    ),
    create(
        "a new file",
        "src/shop/Fresh.java",
        "package shop;\n\nclass Fresh {\n    double fresh = Shapes.total(1) + nothing;\n}\n",
        "src/shop/Fresh.java: fresh =",
    ),
    create(
        "a new file without errors",
        "src/shop/Clean.java",
        'package shop;\n\nclass Clean {\n    String clean = Helpers.padded("a", 2);\n}\n',
    ),
    create(
        "a class in the wrong file",
        "src/shop/Wrong.java",
        "package shop;\n\npublic class Other {\n}\n",
        "src/shop/Wrong.java: class Other",
    ),
    delete(H, "src/shop/Report.java: Helpers.padded"),
    move(H, "src/shop/Tools.java", "src/shop/Tools.java: class Helpers"),
    edit("harmless: lines above old errors", S, "public class Shape", "/** A note. */\n\npublic class Shape"),
    edit("harmless: another body", H, "return value;", "return value + 1;"),
]

JAVA: Final = Project(
    "Java",
    "jdtls",
    FILES,
    SEEDS,
    "src/shop/modules/ModuleNUMBER.java",
    "    public static int valueNUMBER(int x, String name) {\n"
    "        return name.isEmpty() ? x * 2 : x;\n    }\n\n",
    head="package shop.modules;\n\npublic class ModuleFILE {\n",
    tail="}\n",
)
