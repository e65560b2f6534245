// Numbers, times and sizes as people read them. Pure.

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function tokens(count: number): string {
  if (count < 1000) return String(count);
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(2)}M`;
}

export function dollars(value: number | null): string {
  if (value === null) return "unknown";
  if (value === 0) return "$0";
  return value < 0.01 ? `$${value.toFixed(4)}` : `$${value.toFixed(2)}`;
}

// Made once: making one takes longer than drawing a row.
const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const DATE_TIME = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });

export function clock(ms: number): string {
  return ms ? CLOCK.format(ms) : "";
}

export function dateTime(ms: number): string {
  return ms ? DATE_TIME.format(ms) : "";
}

/** Return the heading of a day in a list: "Today", "Yesterday" or a date. */
export function day(ms: number, now: number): string {
  const start = (time: number): number => new Date(time).setHours(0, 0, 0, 0);
  const days = Math.round((start(now) - start(ms)) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return new Date(ms).toLocaleDateString([], { weekday: days < 7 ? "long" : undefined, day: "numeric", month: "long", year: days < 300 ? undefined : "numeric" });
}

/** Return the last parts of a path. */
export function shortPath(path: string, parts = 2): string {
  const all = path.split("/").filter(Boolean);
  return all.length <= parts ? path : `…/${all.slice(-parts).join("/")}`;
}

export function count(number: number, thing: string): string {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}
