// Connecting a model: choose a provider, enter its key, try it, and choose the default model.

import { useEffect, useState } from "preact/hooks";
import type { Methods } from "../generated/wire.ts";
import { go } from "../route.ts";
import type { Setup, Store } from "../store.ts";

type Provider = Setup["providers"][number];
type Models = Methods["jumpseat.setup.models"]["result"];

export function SetupView({ store }: { store: Store }) {
  useEffect(() => {
    store.title.value = "Models";
    void store.readSetup();
  }, []);
  return (
    <main class="main" id="main"><div class="page home" tabIndex={0} role="region" aria-label="Models">
      <h1>Connect a model</h1>
      <p class="faint">{store.setup.value?.defaultModel ? `Sessions begin with ${store.setup.value.defaultModel}, unless another model is chosen.` : "Sessions without a model of their own have none yet."}</p>
      <Providers store={store} />
    </div></main>
  );
}

export function Providers({ store }: { store: Store }) {
  const setup = store.setup.value;
  const [chosen, choose] = useState<string | null>(null);
  if (!setup) return <p class="faint">This connection may not change the set-up of the server.</p>;
  return (
    <>
      <ul class="providers">
        {setup.providers.map((provider) => (
          <li key={provider.name}>
            <details open={chosen === provider.name} onToggle={(event) => { if (event.currentTarget.open) choose(provider.name); else if (chosen === provider.name) choose(null); }}>
              <summary><strong>{provider.title}</strong> <span class={provider.ready ? "badge good" : "badge"}>{provider.ready ? "ready" : stateOf(provider)}</span> {provider.detail !== stateOf(provider) && <span class="faint">{provider.detail}</span>}</summary>
              {chosen === provider.name && <ProviderForm store={store} provider={provider} />}
            </details>
          </li>
        ))}
      </ul>
      <OwnServer store={store} onAdded={choose} />
    </>
  );
}

function stateOf(provider: Provider): string {
  switch (provider.kind) {
    case "key": return "needs a key";
    case "local": return "not running";
    case "copilot": return "needs a login";
    case "configured": return "incomplete";
  }
}

function ProviderForm({ store, provider }: { store: Store; provider: Provider }) {
  const [key, setKey] = useState("");
  const [models, setModels] = useState<Models | null>(null);
  const [model, setModel] = useState("");
  const [problem, setProblem] = useState("");
  const [answer, setAnswer] = useState("");
  const [busy, setBusy] = useState("");
  const name = provider.name;

  const attempt = async (what: string, action: () => Promise<void>): Promise<void> => {
    setBusy(what);
    setProblem("");
    setAnswer("");
    try {
      await action();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy("");
  };
  const readModels = async (): Promise<void> => {
    const found = await store.rpc.call("jumpseat.setup.models", { provider: name });
    setModels(found);
    setProblem(found.problem ?? "");
    const ids = found.models.map((one) => one.id);
    setModel(ids.find((id) => id === found.suggested) ?? ids[0] ?? "");
  };
  useEffect(() => {
    if (provider.ready) void attempt("models", readModels);
  }, [name, provider.ready]);

  const saveKey = (event: Event): void => {
    event.preventDefault();
    void attempt("key", async () => {
      const { place, hiddenBy } = await store.rpc.call("jumpseat.setup.putKey", { provider: name, key: key.trim() });
      setKey("");
      setAnswer(hiddenBy ? `The key is stored, but ${hiddenBy} of the environment takes precedence.` : `The key is stored in ${place === "keyring" ? "the keyring" : "a private file"} on the machine of the server.`);
      await store.readSetup();
      await readModels();
    });
  };
  const check = (): void => void attempt("check", async () => {
    const result = await store.rpc.call("jumpseat.setup.check", { provider: name, ...(model ? { model: model.replace(`${name}/`, "") } : {}) });
    if (result.works) setAnswer(`It works. ${result.explanation}`);
    else setProblem(result.explanation);
  });
  const use = (): void => void attempt("use", async () => {
    await store.rpc.call("jumpseat.setup.setModel", { model });
    await Promise.all([store.readSetup(), store.readModels()]);
    store.said.value = `Sessions begin with ${model} now`;
    go({ view: "new" });
  });
  return (
    <div class="provider-form">
      {provider.kind === "key" && (
        <form class="inline" onSubmit={saveKey}>
          <label class="field grow">{provider.keyFrom ? "Another key" : "Key"}{provider.keyVariable ? ` (${provider.keyVariable})` : ""}
            <input type="password" autocomplete="off" spellcheck={false} value={key} onInput={(event) => setKey(event.currentTarget.value)} />
          </label>
          <button type="submit" class={provider.ready ? "" : "primary"} disabled={!key.trim() || busy !== ""}>{busy === "key" ? "Storing…" : "Store the key"}</button>
        </form>
      )}
      {provider.kind === "local" && !provider.ready && <p>Start it{provider.address ? <> at <code>{provider.address}</code></> : null}, then <button type="button" class="link" onClick={() => void store.readSetup()}>look again</button>.</p>}
      {provider.kind === "copilot" && !provider.ready && <p>Log in to GitHub in a terminal: <code>jumpseat setup</code>.</p>}
      {busy === "models" && <p class="faint">Asking for its models…</p>}
      {models && models.models.length > 0 && (
        <div class="inline">
          <label class="field grow">Model
            <select value={model} onChange={(event) => setModel(event.currentTarget.value)}>
              {models.models.map((one) => <option key={one.id} value={one.id}>{one.name ?? one.id}{one.tools === false ? " (calls no tools)" : ""}</option>)}
            </select>
          </label>
          <button type="button" disabled={busy !== ""} onClick={check}>{busy === "check" ? "Trying…" : "Try it"}</button>
          <button type="button" class="primary" disabled={busy !== "" || !model} onClick={use}>Use it</button>
        </div>
      )}
      {problem && <p class="note error" role="alert">{problem}</p>}
      {answer && <p class="note" role="status">{answer}</p>}
    </div>
  );
}

/** A server of one's own, which most often speaks as OpenAI does. */
function OwnServer({ store, onAdded }: { store: Store; onAdded: (name: string) => void }) {
  const [name, setName] = useState("");
  const [address, setAddress] = useState("");
  const [needsKey, setNeedsKey] = useState(false);
  const [problem, setProblem] = useState("");
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    setProblem("");
    try {
      await store.rpc.call("jumpseat.setup.addServer", { name: name.trim(), baseUrl: address.trim(), needsKey });
      await store.readSetup();
      onAdded(name.trim());
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <details class="own-server">
      <summary><strong>Another server</strong> <span class="faint">with an interface like that of OpenAI</span></summary>
      <form onSubmit={(event) => void add(event)}>
        <label class="field">Name<input value={name} spellcheck={false} placeholder="lab" onInput={(event) => setName(event.currentTarget.value)} /></label>
        <label class="field">Address<input value={address} spellcheck={false} placeholder="http://localhost:8000/v1" onInput={(event) => setAddress(event.currentTarget.value)} /></label>
        <label class="check"><input type="checkbox" checked={needsKey} onChange={(event) => setNeedsKey(event.currentTarget.checked)} /> It needs a key</label>
        {problem && <p class="note error" role="alert">{problem}</p>}
        <div class="choices"><button type="submit" disabled={!name.trim() || !address.trim()}>Add it</button></div>
      </form>
    </details>
  );
}
