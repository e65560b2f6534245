// The words that are searched for, in a text. Pure.

export interface Part {
  text: string;
  isHit: boolean;
}

/** Return the words of a search. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Split a text where it has one of the words, in whatever case. */
export function splitAtHits(text: string, words: readonly string[]): Part[] {
  const lower = text.toLowerCase();
  // Some letters have another length in lower case: then the places are others.
  if (words.length === 0 || lower.length !== text.length) return [{ text, isHit: false }];
  const parts: Part[] = [];
  let at = 0;
  for (;;) {
    let next = -1;
    let length = 0;
    for (const word of words) {
      const found = lower.indexOf(word, at);
      if (found >= 0 && (next < 0 || found < next || (found === next && word.length > length))) [next, length] = [found, word.length];
    }
    if (next < 0) break;
    if (next > at) parts.push({ text: text.slice(at, next), isHit: false });
    parts.push({ text: text.slice(next, next + length), isHit: true });
    at = next + length;
  }
  if (at < text.length) parts.push({ text: text.slice(at), isHit: false });
  return parts;
}
