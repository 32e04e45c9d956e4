/** Light or dark: as the system says, unless the reader says otherwise. */
import { useEffect, useState } from "preact/hooks";

const KEY = "heddle-theme";
const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** The theme, and what takes the next one. */
export function useTheme(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(
    () => THEMES.find((each) => each === localStorage.getItem(KEY)) ?? "system",
  );
  useEffect(() => {
    localStorage.setItem(KEY, theme);
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    dispatchEvent(new Event("heddle-theme"));
  }, [theme]);
  const next = () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system");
  return [theme, next];
}
