import assert from "node:assert/strict";
import { test } from "node:test";
import { Blocks } from "../src/state/blocks.ts";
import { sumBy } from "../src/state/spending.ts";
import { splitAtHits, wordsOf } from "../src/state/words.ts";
import { beginningOf } from "../src/views/folded.tsx";

const TEXT = "# Title\n\nOne\nparagraph\n\n- a\n\n- b\n\n  more of b\n\nThen\n\n1. x\n\n2. y\n\n````md\n```\n\nnot the end\n\n```\n````\n\n> quote\n\n\n    code\n\n    still code\n\nEnd";
const BLOCKS = ["# Title\n\n", "One\nparagraph\n\n", "- a\n\n- b\n\n  more of b\n\n", "Then\n\n", "1. x\n\n2. y\n\n", "````md\n```\n\nnot the end\n\n```\n````\n\n", "> quote\n\n\n    code\n\n    still code\n\n", "End"];

test("Markdown is split where its parts mean the same apart, in the same way however it arrives", () => {
  const whole = new Blocks(false, 0);
  whole.read(TEXT);
  assert.deepEqual([...whole.done, whole.last], BLOCKS);
  // A finished text is cut at the same places, but not as often.
  const finished = new Blocks(false);
  finished.read(`${TEXT}\n\n`.repeat(80));
  assert.equal([...finished.done, finished.last].join(""), `${TEXT}\n\n`.repeat(80));
  assert.ok(finished.done.length > 2 && finished.done.every((block) => block.length >= 2000 && block.length < 2000 + TEXT.length));
  const growing = new Blocks(true);
  let seen = 0;
  for (let end = 1; end <= TEXT.length; end++) {
    assert.equal(growing.read(TEXT.slice(0, end)), true);
    assert.equal([...growing.done, growing.last].join(""), TEXT.slice(0, end));
    // What is done never changes.
    assert.deepEqual(growing.done.slice(0, seen), BLOCKS.slice(0, seen));
    seen = growing.done.length;
  }
  // The last line may become another one.
  assert.deepEqual([...growing.done, growing.last], [...BLOCKS.slice(0, -2), BLOCKS.slice(-2).join("")]);
  assert.equal(growing.read("another text"), false);
});

test("code that grows for long is continued in further blocks of the same language", () => {
  const code = "line = 1\n".repeat(2000);
  const growing = new Blocks(true);
  growing.read(`\`\`\`python\n${code}`);
  assert.ok(growing.done.length > 2 && growing.last.length < 5000);
  assert.ok([...growing.done, growing.last].every((block) => block.startsWith("```python\n")));
  const whole = new Blocks(false);
  whole.read(`\`\`\`python\n${code}\`\`\`\n`);
  assert.deepEqual([whole.done.length, whole.last.length], [0, code.length + 14]);
});

test("a long prompt is folded, a short one is not", () => {
  assert.equal(beginningOf("a\nb"), "a\nb");
  assert.equal(beginningOf("line\n".repeat(10_000)).split("\n").length, 15);
  assert.equal(beginningOf("x".repeat(500_000)).length, 4000);
});

test("searched words are marked in whatever case, and nothing else", () => {
  assert.deepEqual(splitAtHits("Find the Finder", wordsOf(" find ER ")).map((part) => (part.isHit ? `[${part.text}]` : part.text)).join(""), "[Find] the [Find][er]");
  assert.deepEqual(splitAtHits("İİ", ["i"]), [{ text: "İİ", isHit: false }]);
});

test("a cost with unknown prices is a lower bound", () => {
  const call = (day: string, costUsd?: number): any => ({ day, calls: 1, inputTokens: 10, outputTokens: 1, costUsd });
  const sums = sumBy([call("a", 1), call("a"), call("b"), call("b"), call("c", 2), call("c", 3)], (one) => one.day);
  assert.deepEqual(sums.map((one) => [one.name, one.tokens, one.costUsd, one.isPartial]), [["a", 22, 1, true], ["b", 22, null, false], ["c", 22, 5, false]]);
});
