// When the page shows what has arrived: soon, less often the longer that takes, and between the keys of a person.

const SHORTEST_PAUSE_MS = 16;
const LONGEST_PAUSE_MS = 400;
/** The time in which the page does nothing, as a multiple of that in which it shows what has arrived. */
const PAUSE_SHARE = 2;
/** The time after a key in which a person still types. */
const TYPING_MS = 1000;
/** The least time between two updates after keys. */
const BETWEEN_KEYS_MS = 150;

/**
 * Runs an update some time after it was asked for. While a person types, updates run when a key was shown: their
 * frame is over before the next key, which would have to wait for it.
 */
export class Pace {
  private waiting: ReturnType<typeof setTimeout> | null = null;
  private pauseMs = 0;
  private typedAt = -Infinity;
  private ranAt = -Infinity;

  constructor(private readonly update: () => void) {
    globalThis.addEventListener?.("keydown", (event) => this.pressed(event.key), { capture: true, passive: true });
  }

  /** Update soon. Further calls until then change nothing. */
  soon(): void {
    this.waiting ??= setTimeout(() => this.run(), this.delay());
  }

  private delay(): number {
    if (document.hidden) return LONGEST_PAUSE_MS;
    const now = performance.now();
    const isTyping = now - this.typedAt < TYPING_MS;
    return Math.max(SHORTEST_PAUSE_MS, this.pauseMs, isTyping ? this.ranAt + LONGEST_PAUSE_MS - now : 0);
  }

  private pressed(key: string): void {
    // What follows a prompt that is sent is to be seen at once.
    this.typedAt = key === "Enter" ? -Infinity : performance.now();
    if (this.waiting === null) return;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.run(), this.delay());
    afterFrame(() => {
      if (this.waiting !== null && performance.now() - this.ranAt >= BETWEEN_KEYS_MS) this.run();
    });
  }

  private run(): void {
    if (this.waiting !== null) clearTimeout(this.waiting);
    this.waiting = null;
    const begun = performance.now();
    this.ranAt = begun;
    this.update();
    // Hidden pages have no frames.
    if (!document.hidden) afterFrame(() => { this.pauseMs = Math.min(LONGEST_PAUSE_MS, PAUSE_SHARE * (performance.now() - begun)); });
  }
}

function afterFrame(run: () => void): void {
  requestAnimationFrame(() => setTimeout(run));
}
