// Where the executable of the server is: the one of the settings, one in the path, one where installers put it, else the
// one in the extension. It is looked up here, not by the system: that may look into the folder first.

import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { posix, win32, type PlatformPath } from "node:path";

export const NAME = "jumpseat";

export interface Places {
  platform: NodeJS.Platform;
  /** The variables of the process that will be started. */
  environment: NodeJS.ProcessEnv;
  /** The folders of the workspace, whose files are not those of the user. */
  folders: readonly string[];
  /** The home folder of the user. */
  home?: string;
  isExecutable?: (file: string) => boolean;
}

/** The folders, below the home folder or anywhere, into which installers put commands; editors from a dock have a short path. */
const INSTALLED = [".local/bin", ".local/pipx/venvs/jumpseat/bin", ".local/share/pipx/venvs/jumpseat/bin", ".local/share/uv/tools/jumpseat/bin", "/opt/homebrew/bin", "/usr/local/bin"];
/** The environments that a project has by custom. */
const OF_PROJECTS = [".venv", "venv"];

/**
 * Return the path of the server. `named` is that of the settings, whose default is the bare name; `extension` is the
 * folder of the extension, which contains a server if it was packed for a platform. A name that is not found stays.
 */
export function findServer(named: string, places: Places, extension: string | undefined): string {
  const found = executable(named, places) ?? (named === NAME ? installed(places) : null);
  if (found !== null || named !== NAME || !extension) return found ?? named;
  const path = places.platform === "win32" ? win32 : posix;
  const carried = path.join(extension, "server", places.platform === "win32" ? `${NAME}.exe` : NAME);
  return (places.isExecutable ?? isExecutable)(carried) ? carried : NAME;
}

/** Return the server in the active environment or where installers put it, or `null`. */
function installed(places: Places): string | null {
  const path = places.platform === "win32" ? win32 : posix;
  const scripts = path === win32 ? "Scripts" : "bin";
  const environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].flatMap((name) => variable(name, places) ?? []).map((folder) => path.join(folder, scripts));
  const usual = path === win32 ? [] : INSTALLED.flatMap((folder) => (path.isAbsolute(folder) ? folder : places.home ? path.join(places.home, folder) : []));
  const environment = { PATH: [...environments, ...usual].join(path.delimiter) };
  return executable(NAME, { ...places, environment });
}

/**
 * Return the server in an environment of a folder of the workspace, or `null`. Whoever can write there chooses what it
 * is, also a model: it is never started without a question.
 */
export function serverOfFolder(places: Places): string | null {
  const path = places.platform === "win32" ? win32 : posix;
  const name = path === win32 ? path.join("Scripts", `${NAME}.exe`) : path.join("bin", NAME);
  const candidates = places.folders.flatMap((folder) => OF_PROJECTS.map((one) => path.join(folder, one, name)));
  return candidates.find(places.isExecutable ?? isExecutable) ?? null;
}

/** Return the absolute path of a command, or `null`: a name is looked up in `PATH`, but not in the workspace. */
export function executable(command: string, places: Places): string | null {
  const path = places.platform === "win32" ? win32 : posix;
  if (path.isAbsolute(command)) return command;
  if (command.includes("/") || (path === win32 && /[\\:]/.test(command))) return null;
  const endings = path === win32 && path.extname(command) === "" ? [".com", ".exe"] : [""];
  const inner = places.folders.map((folder) => real(folder));
  for (const folder of (variable("PATH", places) ?? "").split(path.delimiter)) {
    if (!path.isAbsolute(folder) || inner.some((one) => isIn(real(folder), one, path))) continue;
    const found = endings.map((ending) => path.join(folder, command + ending)).find(places.isExecutable ?? isExecutable);
    if (found !== undefined) return found;
  }
  return null;
}

/** Windows does not distinguish the case of names. */
function variable(name: string, { platform, environment }: Places): string | undefined {
  if (platform !== "win32") return environment[name];
  return Object.entries(environment).find(([one]) => one.toUpperCase() === name)?.[1];
}

function isIn(folder: string, other: string, path: PlatformPath): boolean {
  const way = path.relative(other, folder);
  return way === "" || (way !== ".." && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way));
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function real(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}
