// Changed files as a tree of folders. Pure.

export interface Folder<T> {
  /** The path from the folder above, of several folders if each has nothing but the next. */
  name: string;
  folders: Folder<T>[];
  files: { name: string; file: T }[];
}

/** Return the tree of some files. Paths inside of the folder `root` are shown from there. */
export function treeOf<T extends { path: string }>(files: readonly T[], root: string): Folder<T> {
  const top: Folder<T> = { name: "", folders: [], files: [] };
  const base = root && !root.endsWith("/") ? `${root}/` : root;
  for (const file of files) {
    const parts = (base && file.path.startsWith(base) ? file.path.slice(base.length) : file.path).split("/");
    // An absolute path elsewhere begins with a folder "/".
    if (parts[0] === "") parts.splice(0, 2, `/${parts[1] ?? ""}`);
    let at = top;
    for (const part of parts.slice(0, -1)) {
      let next = at.folders.find((one) => one.name === part);
      if (!next) at.folders.push(next = { name: part, folders: [], files: [] });
      at = next;
    }
    at.files.push({ name: parts[parts.length - 1]!, file });
  }
  top.folders = top.folders.map(joined);
  return top;
}

function joined<T>(folder: Folder<T>): Folder<T> {
  const [only] = folder.folders;
  if (only && folder.folders.length === 1 && folder.files.length === 0) return joined({ ...only, name: `${folder.name}/${only.name}` });
  return { ...folder, folders: folder.folders.map(joined) };
}
