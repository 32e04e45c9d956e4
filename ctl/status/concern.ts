/** One thing that is not as it should be. */
export interface Concern {
  readonly subject: string;
  readonly what: string;
  /** A command, or what to do on the machine. */
  readonly next: string;
}
