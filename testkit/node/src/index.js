// Test agents from vitest and node:test.

export { PROTOCOLS, startAgent } from "./agent.js";
export { serveModel } from "./model.js";
export { differences, ScriptError } from "./patterns.js";
export { assertScript, loadScript, playScript } from "./play.js";
