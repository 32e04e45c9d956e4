/** A sentence that wants to be read, and is read out when it appears. */
import type { ComponentChildren } from "preact";

export function Notice(
  { tone, children }: {
    readonly tone: "bad" | "busy" | "quiet";
    readonly children: ComponentChildren;
  },
) {
  return <p class={`notice ${tone}`} role={tone === "bad" ? "alert" : "status"}>{children}</p>;
}
