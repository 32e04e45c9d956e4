/** `ctl completion SHELL`, and the hidden command that the printed script asks. */
import { buildCommand, proposeCompletions } from "@stricli/core";
import type { Application } from "@stricli/core";
import type { CtlContext } from "../command.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `_heddle() {
  local IFS=$'\\n'
  COMPREPLY=($(heddle complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _heddle heddle
`,
  zsh: `#compdef heddle
_heddle() {
  local -a found
  found=("\${(@f)$(heddle complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -- $found
}
compdef _heddle heddle
`,
  fish:
    `complete -c heddle -f -a '(heddle complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
};

export const completion = buildCommand({
  docs: {
    brief: "Print what makes a shell complete this command",
    fullDescription: "bash: heddle completion bash > /etc/bash_completion.d/heddle\n" +
      'zsh:  heddle completion zsh > "${fpath[1]}/_heddle"\n' +
      "fish: heddle completion fish > ~/.config/fish/completions/heddle.fish",
  },
  parameters: {
    positional: {
      kind: "tuple",
      parameters: [{
        placeholder: "shell",
        brief: SHELLS.join(", "),
        parse: (text: string): Shell => {
          const shell = SHELLS.find((each) => each === text);
          if (shell === undefined) throw new Error(`one of ${SHELLS.join(", ")}`);
          return shell;
        },
      }],
    },
  },
  func(this: CtlContext, _flags: Record<never, never>, shell: Shell) {
    this.io.out(SCRIPTS[shell]);
  },
});

/**
 * What may stand in the place of the last of `words`, a line each. Completing asks no control: a
 * shell must not wait for the network.
 */
export async function complete(
  app: Application<CtlContext>,
  words: readonly string[],
  context: CtlContext,
): Promise<string> {
  const found = await proposeCompletions(app, words, context);
  const names = new Set([
    ...verbsFor(app.root, words),
    ...found.map(({ completion: word }) => word),
  ]);
  return [...names].map((name) => `${name}\n`).join("");
}

/** The library proposes only flags where a noun has a verb of its own by default. */
function verbsFor(root: Target, words: readonly string[]): readonly string[] {
  let target: Target | undefined = root;
  for (const word of words.slice(0, -1)) {
    target = "getRoutingTargetForInput" in target
      ? target.getRoutingTargetForInput(word)
      : undefined;
    if (target === undefined) return [];
  }
  if (!("getAllEntries" in target)) return [];
  const begun = words.at(-1) ?? "";
  return target.getAllEntries().filter(({ hidden }) => !hidden)
    .map(({ name }) => name.original).filter((name) => name.startsWith(begun));
}

type Target = Application<CtlContext>["root"];
