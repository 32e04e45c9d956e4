/** What Prometheus clients say about their process, as far as this one may know it. */
export function processMetrics(startedAtSeconds: number): string {
  return [
    "# HELP process_resident_memory_bytes Resident memory size in bytes.",
    "# TYPE process_resident_memory_bytes gauge",
    `process_resident_memory_bytes ${Deno.memoryUsage().rss}`,
    "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.",
    "# TYPE process_start_time_seconds gauge",
    `process_start_time_seconds ${startedAtSeconds}`,
    "",
  ].join("\n");
}
