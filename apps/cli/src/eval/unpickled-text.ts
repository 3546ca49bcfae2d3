/** Opcodes that precede a text or follow it, with the bytes of their argument: PROTO, FRAME, MEMOIZE, BINPUT, LONG_BINPUT. */
const PASSED_OVER: Readonly<Record<number, number>> = { 0x80: 1, 0x95: 8, 0x94: 0, 0x71: 1, 0x72: 4 };
/** Opcodes of a text, with the bytes of its length: SHORT_BINUNICODE, BINUNICODE, BINUNICODE8. */
const TEXTS: Readonly<Record<number, number>> = { 0x8c: 1, 0x58: 4, 0x8d: 8 };
const STOP = 0x2e;

/**
 * Reads a pickle that holds one text (Python's pickletools.py, protocols 2 to 5). Nothing of it is run.
 * @throws Error for any other pickle
 */
export function unpickledText(pickle: Buffer): string {
  let text: string | null = null;
  for (let at = 0; at < pickle.length;) {
    const code = pickle[at++]!;
    const passed = PASSED_OVER[code];
    const lengthBytes = TEXTS[code];
    if (code === STOP && text !== null) return text;
    if (passed !== undefined) at += passed;
    else if (lengthBytes !== undefined && text === null) {
      // A length beyond six bytes is beyond any file.
      const start = at + lengthBytes;
      const end = start + pickle.subarray(0, start).readUIntLE(at, Math.min(6, lengthBytes));
      text = pickle.toString('utf8', start, end);
      at = end;
    } else break;
  }
  throw new Error('it is a pickle of something other than one text. Pickles are never run; decode it to JSON in Python first');
}
