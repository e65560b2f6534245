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

/** Return a function that writes times. It is made once, and late: the first one of a process takes a browser some 50 ms. */
function writer(options: Intl.DateTimeFormatOptions): (ms: number) => string {
  let made: Intl.DateTimeFormat | undefined;
  return (ms) => (made ??= new Intl.DateTimeFormat([], options)).format(ms);
}

const writeClock = writer({ hour: "2-digit", minute: "2-digit" });
const writeDateTime = writer({ dateStyle: "medium", timeStyle: "short" });
const writeWeekday = writer({ weekday: "long", day: "numeric", month: "long" });
const writeDay = writer({ day: "numeric", month: "long" });
const writeDayOfYear = writer({ day: "numeric", month: "long", year: "numeric" });

export function clock(ms: number): string {
  return ms ? writeClock(ms) : "";
}

export function dateTime(ms: number): string {
  return ms ? writeDateTime(ms) : "";
}

/** Return the heading of a day in a list: "Today", "Yesterday" or a date. */
export function day(ms: number, now: number): string {
  const start = (time: number): number => new Date(time).setHours(0, 0, 0, 0);
  const days = Math.round((start(now) - start(ms)) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return (days < 7 ? writeWeekday : days < 300 ? writeDay : writeDayOfYear)(ms);
}

/** Return the last parts of a path. */
export function shortPath(path: string, parts = 2): string {
  const all = path.split("/").filter(Boolean);
  return all.length <= parts ? path : `…/${all.slice(-parts).join("/")}`;
}

/** Return a whole number as "20,000". */
export function grouped(number: number): string {
  return String(number).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

export function count(number: number, thing: string): string {
  return `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
}
