// Match JSON values against the patterns of scripts: the same as in Python, docs/script.md describes them.

const NAME = /\$\{([A-Za-z_][\w.]*)\}/g;
const WHOLE = /^\$\{([A-Za-z_][\w.]*)\}$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const KINDS = {
  "<any>": (value) => value !== null && value !== undefined,
  "<string>": (value) => typeof value === "string",
  "<number>": (value) => typeof value === "number",
  "<boolean>": (value) => typeof value === "boolean",
  "<object>": isObject,
  "<list>": Array.isArray,
  "<id>": (value) => typeof value === "string" && UUID.test(value),
  "<time>": (value) => typeof value === "string" && TIME.test(value),
};
const SPECIAL = ["$exactly", "$one_of", "$has"];

/** A script is invalid or cannot be played. */
export class ScriptError extends Error {}

/** Return a value as JSON on one line, cut to a length. */
export function preview(value, limit = 200) {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length <= limit ? text : `${text.slice(0, limit)}... (${text.length} characters)`;
}

/**
 * Return where a value differs from a pattern, as `path: expected ..., got ...`.
 * If it matches, the new captures are added to `captures`.
 */
export function differences(pattern, value, captures = {}) {
  const captured = Object.assign(Object.create(null), captures);
  const found = [...compare("", pattern, value, captured)];
  if (found.length === 0) Object.assign(captures, captured);
  return found;
}

/** Replace every `${name}` with its capture. */
export function fill(value, captures) {
  if (typeof value === "string") {
    const whole = WHOLE.exec(value);
    if (whole) return lookup(whole[1], captures);
    return value.replace(NAME, (_, name) => asText(lookup(name, captures)));
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, captures));
  if (isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fill(item, captures)]));
  }
  return value;
}

/** Throw a ScriptError for a pattern that cannot be used. */
export function checkPattern(pattern) {
  if (typeof pattern === "string") {
    if (isExpression(pattern)) expression(pattern);
    else if (/^<[a-z]+>$/.test(pattern) && !(pattern in KINDS) && pattern !== "<absent>") {
      throw new ScriptError(`unknown pattern '${pattern}'; to match this string literally, write '=${pattern}'`);
    }
  } else if (Array.isArray(pattern)) pattern.forEach(checkPattern);
  else if (isObject(pattern)) {
    const special = Object.keys(pattern).find((name) => name.startsWith("$"));
    if (special && (Object.keys(pattern).length > 1 || !SPECIAL.includes(special))) {
      throw new ScriptError(`unknown pattern '${special}'; expected $exactly, $one_of or $has, alone in its object`);
    }
    if (special && special !== "$exactly" && !Array.isArray(pattern[special])) {
      throw new ScriptError(`'${special}' expects an array`);
    }
    if (special !== "$exactly") Object.values(pattern).forEach(checkPattern);
  }
}

const difference = (path, expected, got) => `${path || "(root)"}: expected ${expected}, got ${preview(got)}`;
const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const has = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
const isExpression = (text) => text.length > 2 && text.startsWith("/") && text.endsWith("/");

function expression(pattern) {
  try {
    return new RegExp(pattern.slice(1, -1), "su");
  } catch (error) {
    throw new ScriptError(`not a regular expression: ${pattern}: ${error.message}`);
  }
}

function lookup(name, captures) {
  if (!has(captures, name)) throw new ScriptError(`\${${name}} has no value at this point`);
  return captures[name];
}

function same(one, other) {
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, n) => same(item, other[n]));
  }
  if (isObject(one)) {
    const names = Object.keys(one);
    return (
      isObject(other) &&
      names.length === Object.keys(other).length &&
      names.every((name) => has(other, name) && same(one[name], other[name]))
    );
  }
  return one === other;
}

function* compare(path, pattern, value, captures) {
  if (typeof pattern === "string") yield* compareText(path, pattern, value, captures);
  else if (Array.isArray(pattern)) yield* compareArray(path, pattern, value, captures);
  else if (isObject(pattern)) yield* compareObject(path, pattern, value, captures);
  else if (!same(pattern, value ?? null)) yield difference(path, preview(pattern), value);
}

function* compareText(path, pattern, value, captures) {
  const whole = WHOLE.exec(pattern);
  if (pattern === "<absent>") {
    if (value !== null && value !== undefined) yield difference(path, "no value", value);
  } else if (has(KINDS, pattern)) {
    if (!KINDS[pattern](value)) yield difference(path, pattern, value);
  } else if (pattern.startsWith("=")) {
    if (value !== pattern.slice(1)) yield difference(path, preview(pattern.slice(1)), value);
  } else if (isExpression(pattern)) {
    if (typeof value !== "string" || !expression(pattern).test(value)) {
      yield difference(path, `a string matching ${pattern}`, value);
    }
  } else if (whole) {
    const name = whole[1];
    if (!has(captures, name) && value !== null && value !== undefined) captures[name] = value;
    else if (!has(captures, name)) yield difference(path, `a value for \${${name}}`, value);
    else if (!same(captures[name], value)) yield difference(path, `${preview(captures[name])} (\${${name}})`, value);
  } else if (pattern.search(NAME) >= 0) yield* compareParts(path, pattern, value, captures);
  else if (value !== pattern) yield difference(path, preview(pattern), value);
}

/** Compare a string with names inside: captured names must match, the others are captured. */
function* compareParts(path, pattern, value, captures) {
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const added = [];
  let source = "";
  let end = 0;
  for (const found of pattern.matchAll(NAME)) {
    source += escaped(pattern.slice(end, found.index));
    end = found.index + found[0].length;
    if (has(captures, found[1])) source += escaped(asText(captures[found[1]]));
    else if (added.includes(found[1])) source += `\\k<n${added.indexOf(found[1])}>`;
    else source += `(?<n${added.push(found[1]) - 1}>.+?)`;
  }
  const match = typeof value === "string" && new RegExp(`^${source}${escaped(pattern.slice(end))}$`, "su").exec(value);
  if (!match) yield difference(path, preview(pattern), value);
  else added.forEach((name, place) => (captures[name] = match.groups[`n${place}`]));
}

function* compareObject(path, pattern, value, captures) {
  if ("$exactly" in pattern) {
    if (!same(fill(pattern.$exactly, captures), value)) yield difference(path, `exactly ${preview(pattern.$exactly)}`, value);
  } else if ("$one_of" in pattern) {
    if (!pattern.$one_of.some((choice) => differences(choice, value, captures).length === 0)) {
      yield difference(path, `one of ${preview(pattern.$one_of)}`, value);
    }
  } else if ("$has" in pattern) yield* compareHas(path, pattern.$has, value, captures);
  else if (!isObject(value)) yield difference(path, "an object", value);
  else {
    for (const [name, item] of Object.entries(pattern)) {
      yield* compare(path ? `${path}.${name}` : name, item, has(value, name) ? value[name] : undefined, captures);
    }
  }
}

function* compareHas(path, patterns, value, captures) {
  if (!Array.isArray(value)) return void (yield difference(path, "an array", value));
  const left = [...value];
  for (const pattern of patterns) {
    const place = left.findIndex((item) => differences(pattern, item, captures).length === 0);
    if (place < 0) yield difference(path, `an element like ${preview(pattern)}`, value);
    else left.splice(place, 1);
  }
}

function* compareArray(path, pattern, value, captures) {
  if (!Array.isArray(value)) return void (yield difference(path, "an array", value));
  const open = pattern.at(-1) === "...";
  const wanted = open ? pattern.slice(0, -1) : pattern;
  if (open ? value.length < wanted.length : value.length !== wanted.length) {
    yield difference(path, `${open ? "at least " : ""}${wanted.length} elements`, value);
  }
  for (let place = 0; place < Math.min(wanted.length, value.length); place++) {
    yield* compare(`${path}[${place}]`, wanted[place], value[place], captures);
  }
}
