/** Archives in the form that every tar reads (ustar): files alone, without owner and without time. */

export interface TarFile {
  readonly path: string;
  readonly mode: number;
  readonly bytes: Uint8Array;
}

const BLOCK_BYTES = 512;
/** A name longer than that would need a second field. */
const PATH_CHARS_MAX = 100;

/** The archive. Pure: the same files make the same bytes. Throws RangeError for a path too long. */
export function tarOf(files: readonly TarFile[]): Uint8Array<ArrayBuffer> {
  const sizes = files.map(({ bytes }) => BLOCK_BYTES + padded(bytes.length));
  // Two blocks of zeros end it.
  const archive = new Uint8Array(sizes.reduce((sum, size) => sum + size, 2 * BLOCK_BYTES));
  let at = 0;
  for (const [index, file] of files.entries()) {
    archive.set(headOf(file), at);
    archive.set(file.bytes, at + BLOCK_BYTES);
    at += sizes[index] ?? 0;
  }
  return archive;
}

function padded(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}

function headOf({ path, mode, bytes }: TarFile): Uint8Array {
  if (path.length > PATH_CHARS_MAX) {
    throw new RangeError(`Cannot pack ${path}: its name is too long`);
  }
  const head = new Uint8Array(BLOCK_BYTES);
  const write = (at: number, text: string) => head.set(new TextEncoder().encode(text), at);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  write(0, path);
  write(100, `${octal(mode, 7)}\0`);
  write(108, `${octal(0, 7)}\0${octal(0, 7)}\0`);
  write(124, `${octal(bytes.length, 11)} `);
  write(136, `${octal(0, 11)} `);
  // The checksum counts itself as spaces.
  write(148, " ".repeat(8));
  write(156, "0");
  write(257, "ustar\x0000");
  const sum = head.reduce((sum, byte) => sum + byte, 0);
  write(148, `${octal(sum, 6)}\0 `);
  return head;
}
