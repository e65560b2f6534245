// The login of the page: a key that it never sends. Both sides prove that they have it, because another program may
// have the port of a server that has ended; page_access.py has the steps.

const DATABASE = "jumpseat";
const ENTRY = "login";

export interface Login {
  id: string;
  key: CryptoKey;
}

/** Return a login with a key that no script can read, from what the server has sent; null where that is impossible. */
export async function importLogin(made: { id: string; key: string }): Promise<Login | null> {
  // Browsers have no keys for pages over plain HTTP from another machine.
  if (!globalThis.crypto?.subtle) return null;
  const key = await crypto.subtle.importKey("raw", bytes(made.key), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  return { id: made.id, key };
}

/** Return the token that logs in at the server behind an address; null if the server does not know the login. */
export async function prove(login: Login, origin: string, ask: (path: string) => Promise<Response>): Promise<string | null> {
  const nonce = base64(crypto.getRandomValues(new Uint8Array(32)));
  const answer = await ask(`/login?id=${encodeURIComponent(login.id)}&nonce=${nonce}`);
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const { nonce: theirs, proof } = await answer.json() as { nonce: string; proof: string };
  const text = (who: string): BufferSource => bytes([who, origin, nonce, theirs].join("\n"));
  if (!(await crypto.subtle.verify("HMAC", login.key, unbase64(proof), text("server")))) throw new Error("another program has the port of the server");
  return `login-${login.id}.${theirs}.${base64(new Uint8Array(await crypto.subtle.sign("HMAC", login.key, text("page"))))}`;
}

/** Return the login that the pages of this origin have kept; null without one. */
export function keptLogin(): Promise<Login | null> {
  return inStore("readonly", (store) => store.get(ENTRY)).then((found) => (found as Login | undefined) ?? null, () => null);
}

/** Keep a login for the pages of this origin, or forget it. It is lost where the browser keeps nothing. */
export async function keepLogin(login: Login | null): Promise<void> {
  await inStore("readwrite", (store) => (login ? store.put(login, ENTRY) : store.delete(ENTRY))).catch(() => undefined);
}

function inStore(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(ENTRY);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const request = act(database.transaction(ENTRY, mode).objectStore(ENTRY));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
      request.transaction!.oncomplete = () => database.close();
    };
  });
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new TextEncoder().encode(text));
}

function base64(data: Uint8Array): string {
  return btoa(String.fromCharCode(...data)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function unbase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (character) => character.charCodeAt(0));
}
