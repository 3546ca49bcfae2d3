const BY_ENDING: ReadonlyArray<readonly [RegExp, string]> = [
  [/\.(md|markdown|mdx)$/i, 'text/markdown'],
  [/\.(txt|text|rst)$/i, 'text/plain'],
  [/\.x?html?$/i, 'text/html'],
  [/\.pdf$/i, 'application/pdf'],
];

/** Of a file by its path; empty where it cannot be told, and the gateway tells it from the name. */
export function mediaTypeOfPath(path: string): string {
  return BY_ENDING.find(([ending]) => ending.test(path))?.[1] ?? '';
}
