/** Which addresses a key may be used from, as operators write them. */
import { isIP } from "node:net";
import { type KeySettings, refuse } from "../../core/tenancy/rules.ts";
import { short } from "../../core/tenancy/chain.ts";

/** The same settings. Throws `invalid_input` for what is neither an address nor a prefix. */
export function checkAddresses(action: string, settings: KeySettings): KeySettings {
  for (const text of settings.addresses ?? []) {
    const [address = "", bits, ...more] = text.split("/");
    const version = isIP(address);
    const good = version !== 0 && more.length === 0 &&
      (bits === undefined ||
        (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)));
    if (!good) {
      refuse(action, `"${short(text)}" is no address, nor a prefix such as 10.0.0.0/8`);
    }
  }
  return settings;
}
