/** Which files under a model directory are weights that an engine can be given. */

export interface FoundFile {
  readonly path: string;
  readonly sizeBytes: number;
}

/** One directory that was read. */
export interface FoundFolder {
  readonly path: string;
  /** Files directly in it. */
  readonly files: readonly FoundFile[];
  /** It lies below a folder that is a model itself. */
  readonly insideModel: boolean;
}

/**
 * The models among `folders`, by path: every folder that holds a config.json or safetensors files
 * (with the size of the files directly in it), and every complete GGUF file, split ones by their
 * first part with the size of all.
 */
export function modelFiles(folders: readonly FoundFolder[]): readonly FoundFile[] {
  const found = folders.flatMap((folder) => {
    const sizeBytes = folder.files.reduce((sum, file) => sum + file.sizeBytes, 0);
    const own = !folder.insideModel && isModelFolder(folder.files)
      ? [{ path: folder.path, sizeBytes }]
      : [];
    return [...own, ...ggufFiles(folder.files)];
  });
  return found.sort((a, b) => a.path < b.path ? -1 : a.path > b.path ? 1 : 0);
}

/** Whether a folder with these files is a model as Hugging Face lays it out. */
export function isModelFolder(files: readonly FoundFile[]): boolean {
  return files.some((file) => /\/config\.json$|\.safetensors$/.test(file.path));
}

const PART = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/;

function ggufFiles(files: readonly FoundFile[]): FoundFile[] {
  const whole: FoundFile[] = [];
  const parts = new Map<string, FoundFile[]>();
  for (const file of files) {
    if (!file.path.endsWith(".gguf")) continue;
    const [, stem, , count] = PART.exec(file.path) ?? [];
    if (stem === undefined || count === undefined) {
      whole.push(file);
      continue;
    }
    const key = `${stem} ${count}`;
    parts.set(key, [...parts.get(key) ?? [], file]);
  }
  for (const [key, group] of parts) {
    const count = Number(key.slice(-5));
    const first = group.find((file) => file.path.includes("-00001-of-"));
    if (first === undefined || group.length !== count) continue; // still on its way
    const sizeBytes = group.reduce((sum, file) => sum + file.sizeBytes, 0);
    whole.push({ path: first.path, sizeBytes });
  }
  return whole;
}
