// Exported Markdown runs nothing, and its code stays as it is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Marked } from "marked";
import { plainMarkdown } from "../src/state/plain_markdown.ts";

const TAG = "<script>alert(1)</script>";

test("markup of an answer is text for every viewer, however its code is begun", () => {
  const texts = [
    TAG, `a\n${TAG}`, `- a\n  \`\`\`\n${TAG}`, `  \`\`\`\n\`\`\`\n${TAG}`, `- \`\`\`\n  x\n  \`\`\`\n  ${TAG}`, `   \`\`\`\n     \`\`\`\n\`\`\`\n${TAG}`,
    `\\\`${TAG}\\\``, `\`foo\n\` ${TAG} \``, `- \`\n- ${TAG} \` x \``, `- x \`\n- y \`\nz \` ${TAG} \``, `| a | b |\n|---|---|\n| \` | ${TAG} \` |`,
    `> \`\`\`\n${TAG}`, `<https://a.example/\`>\` ${TAG} \``, `<!--\n\`\`\`\n-->\n${TAG}`, `\`\`\` \`\n${TAG}`, `~~~\n~~~ x\n~~~\n${TAG}`, `para\n    \`\`\`\n    ${TAG}`,
    `- a\n\t\`\`\`\n${TAG}`, `1. a\n   \`\`\`\n\t\`\`\`\n${TAG}`, `\`\`\`\n  \`\`\`\n${TAG}`, `\`\`\`\n\`\`\`\`\n${TAG}`, `[a]:\n\`\`\`\n\n${TAG}`, `<scr\nipt>`, `<\nscript>`, `<svg/onload=alert(1)>`, `</details>${TAG}`,
    `\`\`\`<b>\nx\n\`\`\`\n${TAG}`, `a \`\`b\` ${TAG} \`c`, `*\`\n${TAG}\`*`,
  ];
  for (const text of texts) {
    const html = new Marked({ gfm: true }).parse(plainMarkdown(text), { async: false });
    assert.ok(!/<(script|svg|b>|!--|\/details)/i.test(html), `${JSON.stringify(text)} became ${html}`);
  }
});

test("code and comparisons are exported as they are, and code that does not end is ended", () => {
  for (const same of ["a < b and `List<String>`", "```html\n<b>bold</b>\n```", "1. so:\n   ```html\n   <b>\n\n   </b>\n   ```\n2. next `<i>`"]) assert.equal(plainMarkdown(same), same);
  assert.equal(plainMarkdown("~~~html\n<b>"), "~~~html\n<b>\n~~~");
});
