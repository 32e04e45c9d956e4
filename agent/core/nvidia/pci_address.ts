/**
 * PCI addresses in the one spelling that everything here compares: `0000:3d:00`, domain, bus and
 * device without the function. nvidia-smi, sysfs, the kernel log and error texts each write their
 * own (`00000000:3D:00.0`, `0000:3d:00.0`, `PCI:0000:3d:00`, `GPU0000:65:00.0`).
 */

const ADDRESS = /(?:^|[^0-9a-f])([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})(?![0-9a-f:])/i;

/** The first PCI address in `text`, normalised; undefined when there is none. */
export function pciAddress(text: string): string | undefined {
  // "GPU0000:65:00.0" has no blank after the word, and "U0000" must not hide the domain.
  const match = ADDRESS.exec(text.replace(/GPU(?=[0-9a-f]{4,8}:)/gi, "GPU "));
  const [, domain = "", bus = "", device = ""] = match ?? [];
  if (match === null) return undefined;
  const shortDomain = domain.toLowerCase().replace(/^0+/, "").padStart(4, "0");
  return `${shortDomain}:${bus.toLowerCase()}:${device.toLowerCase()}`;
}

/** The device id out of `pci.device_id` (`0x233010DE`: device, then vendor), as `2330`. */
export function pciDeviceId(text: string): string | undefined {
  return /^0x([0-9a-f]{4})10de$/i.exec(text.trim())?.[1]?.toLowerCase();
}
