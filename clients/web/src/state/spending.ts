// Sums of tokens and cost. Pure.

export interface Spent {
  name: string;
  calls: number;
  tokens: number;
  /** Null if no price is known. */
  costUsd: number | null;
  /** Some calls have no known price, so that the cost is a lower bound. */
  isPartial: boolean;
}

interface Used {
  calls: number;
  inputTokens: number;
  outputTokens: number;
  costUsd?: number | null | undefined;
}

/** Return the sums of all entries with the same name, in the order of the names' first entries. */
export function sumBy<T extends Used>(entries: readonly T[], nameOf: (entry: T) => string): Spent[] {
  const sums = new Map<string, Spent>();
  for (const entry of entries) {
    const name = nameOf(entry);
    const last = sums.get(name);
    const isKnown = typeof entry.costUsd === "number";
    const costUsd = isKnown ? (last?.costUsd ?? 0) + entry.costUsd! : last?.costUsd ?? null;
    const unknownBefore = last !== undefined && (last.isPartial || last.costUsd === null);
    sums.set(name, {
      name, calls: (last?.calls ?? 0) + entry.calls, tokens: (last?.tokens ?? 0) + entry.inputTokens + entry.outputTokens, costUsd,
      isPartial: costUsd !== null && (unknownBefore || !isKnown),
    });
  }
  return [...sums.values()];
}
