/** At most `maxChars` of a text: its head and its tail, and how much is missing between them. */
export function cutMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = Math.ceil(maxChars * 0.6);
  const tail = maxChars - head;
  return `${text.slice(0, head)}\n[... ${text.length - maxChars} characters left out ...]\n${text.slice(text.length - tail)}`;
}
