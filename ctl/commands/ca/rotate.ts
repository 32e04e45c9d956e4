/** `ctl ca rotate start | switch | finish`: the next authority, while the fleet runs. */
import { buildCommand, buildRouteMap } from "@stricli/core";
import { HeddleError } from "@heddle/proto/error";
import type { CtlContext } from "../../command.ts";
import { finishRotation, rotationStep, startRotation, switchAuthority } from "./rotation.ts";

const start = buildCommand({
  docs: { brief: "Make the next authority; machines are to trust both" },
  parameters: { flags: {} },
  async func(this: CtlContext) {
    const folder = this.folders.authority;
    if (await rotationStep(folder) === "switched") {
      throw new HeddleError(
        "failed_precondition",
        'Cannot start: a rotation waits for "heddle ca rotate finish"',
      );
    }
    await startRotation(folder, Date.now());
    this.io.out(
      `The next authority is in ${folder}/next, and both are to be trusted.\n` +
        'Run site.yml, so that every machine does; then "heddle ca rotate switch"\n',
    );
  },
});

const switchOver = buildCommand({
  docs: { brief: "Let the next authority sign; both stay trusted" },
  parameters: { flags: {} },
  async func(this: CtlContext) {
    const folder = this.folders.authority;
    const step = await rotationStep(folder);
    if (step === "none") {
      throw new HeddleError(
        "failed_precondition",
        'Cannot switch: no rotation was started; "heddle ca rotate start" does',
      );
    }
    if (step === "started") await switchAuthority(folder);
    this.io.out(
      "The new authority signs.\n" +
        "Put root-key.pem away, off this machine. Run site.yml, so that everybody has a " +
        'certificate of it; then "heddle ca rotate finish"\n',
    );
  },
});

const finish = buildCommand({
  docs: { brief: "Forget the old authority; refused while a certificate of it is in use" },
  parameters: {
    flags: {
      except: {
        kind: "parsed",
        parse: parseHolder,
        variadic: true,
        optional: true,
        placeholder: "role/name",
        brief: "Who has left the fleet, such as agent/gpu-7; may stand several times",
      },
    },
  },
  async func(this: CtlContext, { except }: { readonly except?: readonly string[] }) {
    const folder = this.folders.authority;
    const step = await rotationStep(folder);
    if (step === "started") {
      throw new HeddleError(
        "failed_precondition",
        'Cannot finish: the old authority still signs; "heddle ca rotate switch" ends that',
      );
    }
    if (step === "none") {
      this.io.out("No rotation is under way\n");
      return;
    }
    await finishRotation(folder, { now: Date.now(), except: new Set(except) });
    this.io.out(
      "Only the new authority is to be trusted. Run site.yml, so that every machine does as well\n",
    );
  },
});

function parseHolder(text: string): string {
  if (/^[a-z]+\/[^/]+$/.test(text)) return text;
  throw new SyntaxError(`want role/name, as in agent/gpu-7: "${text}"`);
}

export const rotate = buildRouteMap({
  docs: { brief: "Replace the authority while the fleet runs, in three steps" },
  routes: { start, switch: switchOver, finish },
});
