/** How many PCIe lanes a GPU uses, of those that it could. */
import { countOf, type Row } from "../nvidia/nvidia_csv.ts";

/** No card has more than 32 lanes, and none that works has none: anything else is unknown. */
export function pcieWidths(
  row: Row | undefined,
): { readonly pcieWidth: number | undefined; readonly pcieWidthMax: number | undefined } {
  const lanes = (field: string) => {
    const count = countOf(row, field);
    return count !== undefined && count >= 1 && count <= 32 ? count : undefined;
  };
  return {
    pcieWidth: lanes("pcie.link.width.current"),
    pcieWidthMax: lanes("pcie.link.width.max"),
  };
}
