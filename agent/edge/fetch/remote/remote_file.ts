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
}

/** A source, resolved: what it is made of now. */
export interface RemoteListing {
  /** The commit, or what stands for one: it changes when any file does. */
  readonly version: string;
  readonly files: readonly RemoteFile[];
}
