/** Whether a port can be bound: an engine finds out only after it has loaded its weights. */
export function isPortFree(address: string, port: number): Promise<boolean> {
  try {
    Deno.listen({ hostname: address, port }).close();
    return Promise.resolve(true);
  } catch (error) {
    // Any other refusal (an address that is not local) is the engine's to tell, in its own words.
    return Promise.resolve(!(error instanceof Deno.errors.AddrInUse));
  }
}
