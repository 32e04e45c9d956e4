import { deepEqual, equal } from "node:assert/strict";
import { matchRoute } from "../request/route.ts";
import type { ControlFieldPolicy } from "../policy/control_fields.ts";
import { parseForm } from "./form_request.ts";
import { FormScanner } from "./form_scan.ts";

function route() {
  const match = matchRoute("POST", "/v1/audio/transcriptions");
  if (match.kind !== "route" || match.route.kind !== "inference") throw new Error("no route");
  return match.route;
}

function bodyOf(fields: readonly (readonly [name: string, value: string])[]): string {
  const parts = fields.map(([name, value]) =>
    `--B\r\nContent-Disposition: form-data; name="${name}"${
      name === "file" ? '; filename="a"' : ""
    }\r\n\r\n${value}\r\n`
  );
  return `${parts.join("")}--B--\r\n`;
}

function parse(text: string, controlFields: ControlFieldPolicy = "strip") {
  const scanner = new FormScanner("B");
  const bytes = new TextEncoder().encode(text);
  scanner.push(bytes);
  const form = scanner.end();
  if (form.kind === "invalid") throw new Error(form.detail);
  const contentType = "multipart/form-data; boundary=B";
  const whole = { parts: form.parts, bytes: bytes.length, contentType };
  return parseForm(route(), whole, { controlFields });
}

/** What the engine gets. */
function sent(text: string, servedName: string): string {
  const step = parse(text);
  if (step.kind === "end") throw new Error(JSON.stringify(step.outcome));
  return step.value.body(servedName).map((piece) =>
    piece instanceof Uint8Array
      ? new TextDecoder().decode(piece)
      : text.slice(piece.start, piece.end)
  ).join("");
}

Deno.test("parseForm() reads the model and whether to stream, in any order", () => {
  const step = parse(bodyOf([["file", "abc"], ["stream", "True"], ["model", "m"]]));
  if (step.kind === "end") throw new Error("refused");
  deepEqual([step.value.model, step.value.stream], ["m", true]);
  equal(step.value.contentType, "multipart/form-data; boundary=B");
});

Deno.test("parseForm() sends the bytes as they came, but for the model's name", () => {
  const text = bodyOf([["file", "abc"], ["model", "m"], ["prompt", "x"]]);
  equal(sent(text, "m"), text);
  equal(
    sent(text, "org/longer"),
    bodyOf([["file", "abc"], ["model", "org/longer"], ["prompt", "x"]]),
  );
});

Deno.test("parseForm() takes control fields out whole, or refuses them", () => {
  const text = bodyOf([["priority", "-9"], ["file", "abc"], ["model", "m"], ["rid", "x"]]);
  equal(sent(text, "n"), bodyOf([["file", "abc"], ["model", "n"]]));
  const step = parse(text, "refuse");
  equal(step.kind === "end" && "param" in step.outcome && step.outcome.param, "priority");
});

Deno.test("parseForm() refuses a form whose model is not one name", () => {
  for (
    const fields of [
      [["file", "abc"]],
      [["model", ""]],
      [["model", "a"], ["model", "b"]],
      [["model", "a"], ["stream", "true"], ["stream", "false"]],
    ] as const
  ) equal(parse(bodyOf(fields)).kind, "end", JSON.stringify(fields));
});
