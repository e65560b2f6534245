// Questions take no answer before a person can have seen them.

/** The time in milliseconds for which a new question takes no answer: a click may have been meant for what was there. */
export const SETTLE_MS = 600;

/** Remembers since when questions are shown. Times are in milliseconds. */
export class Settling {
  private readonly since = new Map<string, number>();

  /** Note that a question has come into sight, where something else was before. */
  shown(id: string, now: number): void {
    this.since.set(id, now);
  }

  forget(id: string): void {
    this.since.delete(id);
  }

  /** Return whether a question takes an answer. */
  isSettled(id: string, now: number): boolean {
    return now - (this.since.get(id) ?? now) >= SETTLE_MS;
  }
}
