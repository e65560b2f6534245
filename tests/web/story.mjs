// The scripted model of the tests: what it answers to which prompt.

import { call } from "./support.mjs";

/** A picture of one red pixel. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

const ANSWER = `The function keeps accents now:

1. \`slugify\` normalizes to **NFC** before it replaces anything
2. a leading or trailing dash is removed

\`\`\`python
def slugify(text: str) -> str:
    """Return a title as a part of an address."""
    text = unicodedata.normalize("NFC", text)
    return re.sub(r"[^\\w]+", "-", text.lower()).strip("-")
\`\`\`

| title | before | after |
|---|---|---|
| \`Ünï code\` | \`n-code\` | \`ünï-code\` |
| \`Hello, World!\` | \`hello-world-\` | \`hello-world\` |

The test run still fails: there is **no test file** yet. See [the documentation](https://example.org/docs).`;

export const PROMPTS = [
  {
    when: "slugs of titles",
    turns: [
      { reasoning: "The project may have a function like that. I look at it first, write down what to do, and then change it.", text: "I look at the project first.", delay_ms: 12, usage: { input: 3200, output: 80, cache_read: 0 }, tool_calls: [call("bash", { command: "ls -la && sleep 1", description: "List the files of the project" }, "list"), call("sql", { query: "INSERT INTO todos (id, title, status) VALUES ('a', 'Look at the project', 'done'), ('b', 'Write slugify', 'in_progress'), ('c', 'Test it', 'pending')" }, "plan")] },
      { delay_ms: 12, usage: { input: 3600, output: 160, cache_read: 3100 }, tool_calls: [call("create", { path: "slug.py", file_text: "import re\nimport unicodedata\n\n\ndef slugify(text):\n    return re.sub(r'[^a-z]+', '-', text.lower())\n\n\ndef main():\n    print(slugify('Hello World'))\n" }, "write")] },
      { delay_ms: 12, usage: { input: 4100, output: 210, cache_read: 3500 }, tool_calls: [call("edit", { path: "slug.py", old_str: "    return re.sub(r'[^a-z]+', '-', text.lower())\n", new_str: "    text = unicodedata.normalize('NFC', text)\n    return re.sub(r'[^\\w]+', '-', text.lower()).strip('-')\n" }, "change")] },
      { delay_ms: 12, usage: { input: 4700, output: 90, cache_read: 4000 }, tool_calls: [call("task", { name: "scout", agent_type: "explore", description: "Find callers", prompt: "Look around for callers of slugify" }, "delegate"), call("bash", { command: "python3 -m unittest nothing_here", description: "Run the tests" }, "fail")] },
      { text: ANSWER, delay_ms: 4, usage: { input: 5200, output: 300, cache_read: 4600 } },
    ],
  },
  {
    when: "callers of slugify",
    turns: [
      { delay_ms: 10, usage: { input: 900, output: 30 }, tool_calls: [call("grep", { pattern: "slugify", path: "." }, "find")] },
      { text: "Only `slug.py` mentions it.", delay_ms: 10, usage: { input: 1000, output: 20 } },
    ],
  },
  { when: "install", turns: [{ tool_calls: [call("bash", { command: "touch installed && echo installed", description: "Install the project" }, "install")] }, { text: "The result was: {{last_tool_result}}" }] },
  { when: "make a note", turns: [{ tool_calls: [call("create", { path: "note.txt", file_text: "remember\n" }, "note")] }, { text: "Noted." }] },
  { when: "which colour", turns: [{ tool_calls: [call("ask_user", { question: "Which **colour** shall it have?", choices: ["Red", "Blue"] }, "colour")] }, { text: "Painted. {{last_tool_result}}" }] },
  { when: "slowly", turns: [{ deltas: Array.from({ length: 400 }, (_, at) => `word${at} `), delay_ms: 40 }] },
  { when: "hang", turns: [{ text: "I begin", hang: true }] },
  { when: "picture", turns: [{ text: "A red pixel." }] },
];
