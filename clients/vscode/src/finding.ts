// Find the executable of the server: the one in the settings, one in the path, else the one in the extension.

import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";

export const NAME = "jumpseat";
const ENDINGS = process.platform === "win32" ? [".exe", ".cmd"] : [""];

/**
 * Return the path of the server. `named` is that of the settings, whose default is the bare name; `environment` is the
 * server's, and `extension` the folder of the extension, which contains a server if it was packed for a platform.
 */
export async function findServer(named: string, environment: NodeJS.ProcessEnv, extension: string | undefined): Promise<string> {
  if (named !== NAME) return named;
  const folders = (environment["PATH"] ?? environment["Path"] ?? "").split(delimiter).filter(Boolean);
  for (const folder of folders) {
    if (await isExecutable(join(folder, NAME))) return NAME;
  }
  const carried = extension && join(extension, "server", NAME);
  return carried && await isExecutable(carried) ? carried + (ENDINGS[0] ?? "") : NAME;
}

async function isExecutable(path: string): Promise<boolean> {
  for (const ending of ENDINGS) {
    try {
      await access(path + ending, constants.X_OK);
      return true;
    } catch {
      // Another ending, or another folder.
    }
  }
  return false;
}
