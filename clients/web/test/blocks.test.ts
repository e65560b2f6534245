import assert from "node:assert/strict";
import { test } from "node:test";
import { Blocks, definitionsOf, withDefinitions } from "../src/state/blocks.ts";
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
  growing.finish();
  assert.equal([...growing.done, growing.last].join(""), `\`\`\`python\n${code}`);
  // What was before the code stays, what it was cut into is one block again, also if more has come with the end.
  const ended = new Blocks(true);
  const before = "Before\n\n";
  ended.read(`${before}\`\`\`python\n`);
  ended.read(`${before}\`\`\`python\n${code}`);
  const text = `${before}\`\`\`python\n${code}\`\`\`\n\nAfter all of it.`;
  ended.read(text);
  ended.finish();
  assert.equal([...ended.done, ended.last].join(""), text);
  assert.deepEqual([ended.done[0], ended.last], [before, "After all of it."]);
  assert.equal(ended.done.filter((block) => block.includes("line = 1")).length, 1);
});

test("what comes at once is in blocks of some length, which are laid out in parts; a long list is cut where its numbers go on", () => {
  const paragraphs = "A paragraph.\n\n".repeat(1000);
  const growing = new Blocks(true);
  growing.read(paragraphs);
  assert.ok(growing.done.length > 4 && growing.done.slice(0, -1).every((block) => block.length >= 2000 && block.length < 2100));
  assert.ok(growing.parts.length > 2 && growing.parts.length < growing.done.length);
  for (const [item, isCut] of [[(at: number) => `${at + 1}. one`, true], [() => "- one", true], [() => "1. one", false]] as const) {
    const list = Array.from({ length: 2000 }, (_, at) => `${item(at)}\n\n  more of it\n\n`).join("");
    const blocks = new Blocks(true);
    blocks.read(list);
    assert.equal(blocks.done.length > 2, isCut);
    assert.equal([...blocks.done, blocks.last].join(""), list);
  }
});

test("blocks get the definitions of links that they use", () => {
  const definitions = definitionsOf("[One][1], [two]\n\n[1]: https://example.org/1\n  [Two]: https://example.org/2 \"Two\"\n[1]: https://example.org/other\n");
  assert.equal(withDefinitions("[One][1]", definitions), "[1]: https://example.org/1\n\n[One][1]");
  assert.equal(withDefinitions("[two] and [TWO]", definitions), "  [Two]: https://example.org/2 \"Two\"\n\n[two] and [TWO]");
  assert.equal(withDefinitions("[three]", definitions), "[three]");
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
