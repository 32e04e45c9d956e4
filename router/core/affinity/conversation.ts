/**
 * What of a request makes its prompt, in the order in which chat templates put it: the engine's
 * cache knows a prompt by its beginning, and so does ours. All of the conversation is part of it:
 * roles, text, tools, and of images what tells one from another.
 */
import type { RouteName } from "../request/route.ts";

/** `undefined` for a member that is not there. */
export type ReadMember = (key: string) => unknown;

export interface Conversation {
  /** The whole prompt, as text that begins alike where prompts begin alike. */
  readonly text: string;
  /** Where the first turn ends: what until there tells conversations apart, and stays. */
  readonly headEnd: number;
}

/** Members before the turns, and the member that holds the turns. */
const MEMBERS: Readonly<Partial<Record<RouteName, readonly [readonly string[], string]>>> = {
  chat_completions: [["tools", "functions", "chat_template_kwargs"], "messages"],
  completions: [[], "prompt"],
  responses: [["tools", "instructions"], "input"],
  messages: [["tools", "system"], "messages"],
};

/** Undefined for routes whose prompts no cache is worth looking for. */
export function conversationOf(route: RouteName, read: ReadMember): Conversation | undefined {
  const members = MEMBERS[route];
  if (members === undefined) return undefined;
  const [before, turnsKey] = members;
  let text = "";
  for (const key of before) {
    const value = read(key);
    if (value !== undefined && value !== null) text += `${JSON.stringify(value)}\n`;
  }
  const turns = read(turnsKey);
  if (!Array.isArray(turns)) {
    text += typeof turns === "string" ? turns : JSON.stringify(turns ?? null);
    return { text, headEnd: text.length };
  }
  let headEnd: number | undefined;
  for (const turn of turns) {
    text += isPlain(turn) ? `${turn.role}\n${turn.content}\n` : `${JSON.stringify(turn)}\n`;
    // What the operator of an application wrote is common to all of its conversations.
    if (headEnd === undefined && !isSystem(turn)) headEnd = text.length;
  }
  return { text, headEnd: headEnd ?? text.length };
}

/** Nearly every turn: a role and a text, which need not be made JSON again to be told apart. */
function isPlain(turn: unknown): turn is { readonly role: string; readonly content: string } {
  return typeof turn === "object" && turn !== null && "role" in turn && "content" in turn &&
    typeof turn.role === "string" && typeof turn.content === "string" &&
    Object.keys(turn).length === 2;
}

function isSystem(turn: unknown): boolean {
  if (typeof turn !== "object" || turn === null || !("role" in turn)) return false;
  return turn.role === "system" || turn.role === "developer";
}
