/**
 * Which files of a source are fetched. A repository often holds the same weights several times, in
 * forms for other programs: an engine takes one, so one is fetched.
 */
import { matchesGlob } from "./glob.ts";
import { isOwnPath } from "./own_name.ts";

export interface ListedFile {
  readonly path: string;
  /** Undefined: the server does not say before it sends. */
  readonly size: number | undefined;
}

export interface Selection<F extends ListedFile> {
  readonly files: readonly F[];
  /** What an engine is given, below the folder; empty: the folder itself. */
  readonly entry: string;
}

export type Selected<F extends ListedFile> =
  | { readonly kind: "selected"; readonly selection: Selection<F> }
  | { readonly kind: "nothing"; readonly why: string };

export interface Wanted {
  /** A file, or a folder, of the source; absent: all of it. */
  readonly file?: string;
  /** Patterns; with some, only what one of them matches is fetched. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

const SAFETENSORS = /\.safetensors$/;
const GGUF = /\.gguf$/i;
const PICKLED = /\.(?:bin|pt|pth|ckpt)$/;
/** Forms for programs that are no engines of ours, and what only a page shows. */
const NEVER =
  /(?:^|\/)(?:\.git|\.cache|onnx|openvino|coreml|flax_model|tf_model|rust_model)|\.(?:onnx|onnx_data|msgpack|h5|tflite|mlmodel|ot|png|jpe?g|gif|webp|svg|mp4|pdf|zip|tar|gz)$/i;
const PART = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;
const EXAMPLES_MAX = 8;

/** Chooses among `listed`. Pure; the result is in the order of `listed`. */
export function selectFiles<F extends ListedFile>(
  listed: readonly F[],
  wanted: Wanted,
): Selected<F> {
  const { file, include, exclude } = wanted;
  const named = file === undefined ? listed : ofFile(listed, file);
  if (named.length === 0) {
    return nothing(
      listed.length === 0
        ? "it holds no files"
        : `it has no ${file}; it has ${examples(listed.map(({ path }) => path))}`,
    );
  }
  const matched = named.filter(({ path }) =>
    // What we write ourselves would take its place.
    !isOwnPath(path) &&
    (include.length === 0 || include.some((each) => matchesGlob(each, path))) &&
    !exclude.some((each) => matchesGlob(each, path))
  );
  if (matched.length === 0) {
    return nothing(`source_include and source_exclude leave nothing of its ${named.length} files`);
  }
  // Who says which files gets them; the rule below is for those who leave it to us.
  const chosen = include.length > 0 || file !== undefined ? matched : usual(matched);
  const models = ggufModels(chosen);
  const [only] = models;
  if (chosen.some(({ path }) => SAFETENSORS.test(path) || PICKLED.test(path))) {
    return selected(chosen, folderOf(listed, file));
  }
  if (only === undefined) {
    return nothing(`none of its files are weights: ${examples(chosen.map(({ path }) => path))}`);
  }
  if (models.length > 1) {
    return nothing(
      `it holds ${models.length} GGUF models: name one after the repository, such as ${
        examples(models)
      }`,
    );
  }
  return selected(chosen, only);
}

/** Paths of complete GGUF models among files: of one in parts, its first. */
function ggufModels(files: readonly ListedFile[]): readonly string[] {
  const paths = files.map(({ path }) => path).filter((path) =>
    GGUF.test(path) && !/(?:^|\/)mmproj/i.test(path)
  );
  return paths.filter((path) => {
    const [, , number] = PART.exec(path) ?? [];
    return number === undefined || Number(number) === 1;
  });
}

// The file itself with the other parts of it, or everything below a folder.
function ofFile<F extends ListedFile>(listed: readonly F[], file: string): readonly F[] {
  const [, stem, , count] = PART.exec(file) ?? [];
  if (stem !== undefined) {
    const parts = listed.filter(({ path }) => {
      const [, its, , of] = PART.exec(path) ?? [];
      return its === stem && of === count;
    });
    return parts.length === Number(count) ? parts : [];
  }
  return listed.filter(({ path }) => path === file || path.startsWith(`${file}/`));
}

function folderOf(listed: readonly ListedFile[], file: string | undefined): string {
  return file === undefined || listed.some(({ path }) => path === file) ? "" : file;
}

function usual<F extends ListedFile>(files: readonly F[]): readonly F[] {
  const safe = files.some(({ path }) => SAFETENSORS.test(path));
  const gguf = files.some(({ path }) => GGUF.test(path));
  return files.filter(({ path }) => {
    if (NEVER.test(path)) return false;
    // Meta's own form, beside the one that engines read.
    if (/^(?:original|metal)\//.test(path)) return false;
    if (PICKLED.test(path)) return !safe && !gguf;
    return GGUF.test(path) ? !safe : true;
  });
}

function selected<F extends ListedFile>(files: readonly F[], entry: string): Selected<F> {
  return { kind: "selected", selection: { files, entry } };
}

function nothing<F extends ListedFile>(why: string): Selected<F> {
  return { kind: "nothing", why };
}

function examples(names: readonly string[]): string {
  const shown = names.slice(0, EXAMPLES_MAX).join(", ");
  return names.length > EXAMPLES_MAX ? `${shown} and ${names.length - EXAMPLES_MAX} more` : shown;
}
