// The file that an edit would leave behind. Pure.

import { applyPatch, parsePatch } from "diff";

/** Return the text of a file after the change that a permission request is about; null if the change does not fit. */
export function proposedText(request: { newFileContents?: string; diff?: string }, before: string): string | null {
  if (typeof request.newFileContents === "string") return request.newFileContents;
  try {
    const patches = parsePatch(request.diff ?? "");
    if (patches.length !== 1 || patches[0]!.hunks.length === 0) return null;
    const after = applyPatch(before, patches[0]!);
    return after === false ? null : after;
  } catch {
    return null;
  }
}
