const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** Whether lists and objects in a JSON text are nested deeper than so many, told without parsing it. */
export function isDeeperThan(json: string, depthMax: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const char = json.charCodeAt(at);
    if (char === QUOTE) at = endOfText(json, at);
    else if (OPENING.has(char)) {
      depth += 1;
      if (depth > depthMax) return true;
    } else if (CLOSING.has(char)) depth -= 1;
  }
  return false;
}

/** Of the closing quote; the end of all where there is none. */
function endOfText(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    const char = json.charCodeAt(at);
    if (char === BACKSLASH) at += 1;
    else if (char === QUOTE) return at;
  }
  return json.length;
}
