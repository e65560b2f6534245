// The settings of the server's process, and the keys of providers, which the editor keeps in its secret storage.

import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { findServer, NAME, serverOfFolder, type Places } from "./executable.ts";
import type { Command } from "./server.ts";

const EXTENSION = "jumpseat.jumpseat";
const SECRET = "environment";
/** How to get the server. No name for a package index: whoever owned it there would run code here. */
export const INSTALL = "install it from a checkout (pip install ~/src/jumpseat), or name it in the settings";
/** Variables of the editor that would change how a child process works. */
const OF_THE_EDITOR = /^(VSCODE_|ELECTRON_|NODE_OPTIONS$)/;

export function setting<T>(name: string): T {
  return vscode.workspace.getConfiguration("jumpseat").get(name) as T;
}

/** Return the folders of the window on the disk. */
export function folders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((one) => one.uri.scheme === "file").map((one) => one.uri.fsPath);
}

/** Return how to start the server. Settings of a folder that is not trusted are left out by the editor itself. */
export async function serverCommand(secrets: vscode.SecretStorage): Promise<Command> {
  const path = setting<string>("path").trim() || NAME;
  const named = path.startsWith("~") ? join(homedir(), path.slice(1)) : path;
  const own = Object.entries(process.env).filter(([name]) => !OF_THE_EDITOR.test(name));
  const environment = { ...Object.fromEntries(own), ...await keys(secrets), ...setting<Record<string, string>>("environment") };
  const places: Places = { platform: process.platform, environment, folders: folders(), home: homedir() };
  return {
    path: findServer(named, places, vscode.extensions.getExtension(EXTENSION)?.extensionPath),
    arguments: setting<string[]>("arguments"),
    environment,
    folder: (vscode.workspace.isTrusted ? folders()[0] : undefined) ?? homedir(),
  };
}

/** Return the server that a trusted folder of the window brings, or `null`. */
export function ownServer(): string | null {
  return vscode.workspace.isTrusted ? serverOfFolder({ platform: process.platform, environment: process.env, folders: folders() }) : null;
}

/** Ask whether the server of the folder may be started, and name it in the settings of the user. */
export async function useOwnServer(): Promise<void> {
  const path = ownServer();
  if (path === null) return void vscode.window.showInformationMessage("No folder of this window has jumpseat in .venv or venv.");
  const answer = await vscode.window.showWarningMessage(`Start ${path} as the server?`, {
    modal: true, detail: "It is a program of this folder: whoever can change files here can change it. It runs as you, outside of the sandbox.",
  }, "Start It");
  if (answer === "Start It") await vscode.workspace.getConfiguration("jumpseat").update("path", path, vscode.ConfigurationTarget.Global);
}

export async function keys(secrets: vscode.SecretStorage): Promise<Record<string, string>> {
  try {
    return JSON.parse((await secrets.get(SECRET)) ?? "{}");
  } catch {
    return {};
  }
}

/** Keep a key by the environment variable that the server reads it from; an empty one is removed. */
export async function setKey(secrets: vscode.SecretStorage, name: string, value: string): Promise<void> {
  const { [name]: _before, ...others } = await keys(secrets);
  await secrets.store(SECRET, JSON.stringify(value ? { ...others, [name]: value } : others));
}
