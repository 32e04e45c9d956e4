import { isWritten, type SourceFile } from "../repository.ts";

/** Names that say nothing about what is inside, so that everything ends up there. */
const VAGUE_FILE = /(?:^|\/)(?:utils?|helpers?|types|misc|index|mod|common)\.tsx?$/;
const VAGUE_FOLDER = /(?:^|\/)(?:utils?|helpers?|misc|lib)\//;
const SNAKE_CASE = /^[a-z0-9]+(?:_[a-z0-9]+)*(?:\.d)?\.tsx?$/;
const VAGUE_TYPE =
  /^export (?:abstract )?(?:class|interface|type) (\w+(?:Manager|Helper|Utils?|Impl|Data|Info)|I[A-Z][a-z]\w*)\b/gm;

/** English words that begin with a capital I and a small letter, and are no interface prefix. */
const WORDS_IN_I = /^I(?:n|s|t|f|d|mage|sland|tem|ssue|dentity|mport|dle)/;

/** One line for each file, folder or exported type whose name says nothing. */
export function vagueNames(files: readonly SourceFile[]): readonly string[] {
  return files.filter(({ path }) => isWritten(path)).flatMap(({ path, text }) => [
    ...fileNames(path),
    ...typeNames(path, text),
  ]);
}

function fileNames(path: string): readonly string[] {
  if (VAGUE_FILE.test(path) || VAGUE_FOLDER.test(path)) {
    return [`${path}: name it after the one noun or verb that it holds`];
  }
  const name = path.split("/").at(-1) ?? "";
  return SNAKE_CASE.test(name) ? [] : [`${path}: file names are snake_case`];
}

function typeNames(path: string, text: string): readonly string[] {
  return [...text.matchAll(VAGUE_TYPE)].map((match) => match[1] ?? "")
    .filter((name) => !/^I[A-Z]/.test(name) || !WORDS_IN_I.test(name))
    .map((name) => `${path}: "${name}": a type is named after what it is, from the glossary`);
}
