// The colours of the page: those of the system, unless a person has chosen others for this browser.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "jumpseat.theme";

export const theme = signal<Theme>("system");

/** Show the colours that were chosen, now and whenever another tab chooses others. */
export function followTheme(): void {
  theme.value = kept();
  effect(() => {
    if (theme.value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
  });
  addEventListener("storage", (event) => {
    if (event.key === KEY) theme.value = kept();
  });
}

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  try {
    if (chosen === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, chosen);
  } catch {
    // Browsers may forbid to keep anything: the choice holds for this page.
  }
}

function kept(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}
