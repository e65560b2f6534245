// Whether the diagnostics of a file belong to its present text, as far as events of the editor show. Pure.

/** Diagnostics come in steps, from several servers: after so long without any, there are no more. */
const QUIET_MS = 150;
/** Servers need not say anything about a file without problems. */
export const LONGEST_MS = 900;

export class Freshness {
  private readonly changes = new Map<string, number>();
  private readonly reports = new Map<string, number>();

  changed(path: string, now: number): void {
    this.changes.set(path, now);
  }

  reported(path: string, now: number): void {
    this.reports.set(path, now);
  }

  forget(path: string): void {
    this.changes.delete(path);
    this.reports.delete(path);
  }

  isFresh(path: string, now: number): boolean {
    const changed = this.changes.get(path);
    if (changed === undefined || now - changed >= LONGEST_MS) return true;
    const reported = this.reports.get(path);
    return reported !== undefined && reported >= changed && now - reported >= QUIET_MS;
  }
}
