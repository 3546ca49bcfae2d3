/** Code as a Markdown block, with a fence that is longer than any in it; '' if there is no code. */
export function fenced(code: string): string {
  if (code.trim() === '') return '';
  const longest = Math.max(2, ...Array.from(code.matchAll(/`{3,}/g), ([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}python\n${code.trimEnd()}\n${fence}`;
}

/** A text without its Markdown blocks of code. A block that doesn't end reaches to the end of the text. */
export function withoutCode(text: string): string {
  if (!text.includes('```')) return text;
  return text
    .replaceAll(/^(`{3,})[^`\n]*\n(?:[\s\S]*?\n)?\1`*[ \t]*$|^`{3,}[^`\n]*\n[\s\S]*(?![\s\S])/gm, '')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim();
}
