/** A file of a source, as the server has it. */

export interface FileHash {
  /** "git": SHA-1 over git's own head and the content. */
  readonly algorithm: "sha256" | "git";
  readonly hex: string;
}

export interface RemoteFile {
  /** Its path in the folder. */
  readonly path: string;
  readonly url: string;
  /** Undefined: the server says so when it sends. */
  readonly size: number | undefined;
  /** Undefined: nothing but its size can be checked. */
  readonly hash: FileHash | undefined;
  /** What changes when the content does: an etag, or the hash. */
  readonly identity: string;
  /** What the server sent with it. Absent: it was not asked. */
  readonly tag?: FileTag;
}

/** What a server sends with a file, and changes with its content. */
export interface FileTag {
  readonly etag: string | undefined;
  readonly modified: string | undefined;
}

export function tagOf(headers: Headers): FileTag {
  return {
    // "Weak" says that forms of one content share it, such as a compressed one.
    etag: headers.get("etag")?.replace(/^W\//, "") || undefined,
    modified: headers.get("last-modified") || undefined,
  };
}

/** True when these are of two contents for certain. */
export function isOther(a: FileTag, b: FileTag): boolean {
  if (a.etag !== undefined && b.etag !== undefined) return a.etag !== b.etag;
  return a.modified !== undefined && b.modified !== undefined && a.modified !== b.modified;
}

/** A source, resolved: what it is made of now. */
export interface RemoteListing {
  /** The commit, or what stands for one: it changes when any file does. */
  readonly version: string;
  readonly files: readonly RemoteFile[];
}
