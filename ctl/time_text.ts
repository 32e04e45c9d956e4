/** "2026-11-29 22:01:50Z"; what is no time is shown as the number it is. */
export function formatTime(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  return `${date.toISOString().slice(0, 19).replace("T", " ")}Z`;
}
