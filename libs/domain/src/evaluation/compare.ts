import type { Comparison } from '@etude/contracts/task';

const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$|^[+-]?(?:inf(?:inity)?|nan)$/i;
const INTEGER = /^[+-]?\d+$/;
/** Up to this tolerance, integers must be equal. Otherwise the tolerance would let integers above 1e9 differ by 1. */
const INTEGER_TOLERANCE = 1e-9;

/**
 * Compares a program's output with the expected output.
 *
 * `exact` ignores only CRLF and one line break at the end. `numeric` compares token by token: two numbers may differ by `tolerance` as in
 * `sameValue`, and all other tokens must be equal.
 */
export function sameOutput(actual: string, expected: string, comparison: Comparison, tolerance: number): boolean {
  if (comparison === 'exact') return finalBreakCut(actual) === finalBreakCut(expected);
  const got = tokens(actual);
  const wanted = tokens(expected);
  const same = comparison === 'numeric' ? (a: string, b: string) => sameToken(a, b, tolerance) : (a: string, b: string) => a === b;
  return got.length === wanted.length && got.every((token, at) => same(token, wanted[at]!));
}

function finalBreakCut(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(/\n$/, '');
}

function tokens(text: string): string[] {
  return text.split(/\s+/).filter((token) => token !== '');
}

function sameToken(a: string, b: string, tolerance: number): boolean {
  if (a === b) return true;
  if (!NUMBER.test(a) || !NUMBER.test(b)) return false;
  // A number such as 1e999 is infinite as a float, so only the same text equals it.
  if ([a, b].some((token) => !NAMED.test(token) && !Number.isFinite(Number(token)))) return false;
  const [got, wanted] = [a, b].map((token) => (INTEGER.test(token) ? BigInt(token.replace('+', '')) : parseNumber(token)));
  return sameNumber(got!, wanted!, tolerance);
}

const NAMED = /^([+-]?)(inf|nan)/i;

function parseNumber(token: string): number {
  const named = NAMED.exec(token);
  if (!named) return Number(token);
  const value = named[2]!.toLowerCase() === 'nan' ? Number.NaN : Number.POSITIVE_INFINITY;
  return named[1] === '-' ? -value : value;
}

function closeEnough(a: number, b: number, tolerance: number): boolean {
  if (Object.is(a, b) || a === b || (Number.isNaN(a) && Number.isNaN(b))) return true;
  if (!Number.isFinite(a) || !Number.isFinite(b)) return false;
  const difference = Math.abs(a - b);
  return difference <= tolerance || difference <= tolerance * Math.max(Math.abs(a), Math.abs(b));
}

/** The floats that JSON can't write. Only these three are decoded from `$float`. */
const SPECIAL_FLOATS: ReadonlySet<unknown> = new Set(['nan', 'inf', '-inf']);

type Decoded =
  | { kind: 'atom'; value: string | boolean | null }
  | { kind: 'number'; value: number | bigint }
  | { kind: 'list'; items: unknown[] }
  | { kind: 'set'; items: unknown[] }
  | { kind: 'dict'; entries: Array<[unknown, unknown]>; plain: boolean }
  | { kind: 'opaque'; text: string };

/**
 * Compares a function's value with the expected one. Both are encoded like `RunResult.value`.
 *
 * A tuple counts as a list. A set equals only a `{"$set": [...]}` with the same members. Integers and floats are compared by value. NaN equals NaN.
 * Booleans are not numbers. A plain JSON object may stand for a dict with numeric keys, which JSON can't write. Numbers may differ by `tolerance`,
 * absolute or relative. With a tolerance of 1e-9 or less, whole numbers must be equal. Infinity equals only itself, and so does a whole number beyond
 * the largest float. An object that is not plain data equals only a `$repr` with the same text.
 */
export function sameValue(actual: unknown, expected: unknown, tolerance: number): boolean {
  const got = decode(actual);
  const wanted = decode(expected);
  if (got.kind === 'number' && wanted.kind === 'number') return sameNumber(got.value, wanted.value, tolerance);
  if (got.kind === 'set' && wanted.kind === 'set') return sameMembers(got.items, wanted.items, tolerance);
  if (got.kind === 'list' && wanted.kind === 'list') {
    return got.items.length === wanted.items.length && got.items.every((item, at) => sameValue(item, wanted.items[at], tolerance));
  }
  if (got.kind === 'dict' && wanted.kind === 'dict') return sameDict(got, wanted, tolerance);
  if (got.kind === 'atom' && wanted.kind === 'atom') return got.value === wanted.value;
  return got.kind === 'opaque' && wanted.kind === 'opaque' && got.text === wanted.text;
}

function decode(value: unknown): Decoded {
  if (value === undefined || value === null) return { kind: 'atom', value: null };
  if (typeof value === 'number') return { kind: 'number', value };
  if (typeof value === 'string' || typeof value === 'boolean') return { kind: 'atom', value };
  if (Array.isArray(value)) return { kind: 'list', items: value };
  return decodeObject(value as Record<string, unknown>);
}

function decodeObject(value: Record<string, unknown>): Decoded {
  const keys = Object.keys(value);
  const content = value[keys[0] ?? ''];
  if (keys.length === 1) {
    if (keys[0] === '$set' && Array.isArray(content)) return { kind: 'set', items: content };
    if (keys[0] === '$dict' && areEntries(content)) return { kind: 'dict', entries: content, plain: false };
    if (keys[0] === '$float' && SPECIAL_FLOATS.has(content)) return { kind: 'number', value: parseNumber(String(content)) };
    if (keys[0] === '$int' && typeof content === 'string' && INTEGER.test(content)) return { kind: 'number', value: BigInt(content) };
    if (keys[0] === '$bytes' || keys[0] === '$complex' || keys[0] === '$repr') return { kind: 'opaque', text: JSON.stringify(value) };
  }
  return { kind: 'dict', entries: Object.entries(value), plain: true };
}

/** A program can print its own report, so `$dict` can hold anything. */
function areEntries(content: unknown): content is Array<[unknown, unknown]> {
  return Array.isArray(content) && content.every((entry) => Array.isArray(entry) && entry.length === 2);
}

function isWhole(n: number | bigint): boolean {
  return typeof n === 'bigint' || Number.isInteger(n);
}

function sameNumber(got: number | bigint, wanted: number | bigint, tolerance: number): boolean {
  if (isWhole(got) && isWhole(wanted) && tolerance <= INTEGER_TOLERANCE) {
    // JSON rounds an expected number beyond 2^53, unless it is written as `$int`. So the value is rounded here, too.
    return typeof wanted === 'number' ? Number(got) === wanted : BigInt(got) === wanted;
  }
  // A whole number of more than 308 digits would be infinite as a float.
  const isBeyond = [got, wanted].some((one) => typeof one === 'bigint' && !Number.isFinite(Number(one)));
  return isBeyond ? got === wanted : closeEnough(Number(got), Number(wanted), tolerance);
}

/** Whether two sets have the same members, in any order. Members with equal JSON are matched first, because comparing all pairs is slow. */
function sameMembers(got: readonly unknown[], wanted: readonly unknown[], tolerance: number): boolean {
  if (got.length !== wanted.length) return false;
  const byText = Map.groupBy(wanted, (item) => JSON.stringify(item));
  const unpaired = got.filter((item) => byText.get(JSON.stringify(item))?.pop() === undefined);
  const left = [...byText.values()].flat();
  return unpaired.every((item) => {
    const at = left.findIndex((other) => sameValue(item, other, tolerance));
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  });
}

function sameDict(got: Extract<Decoded, { kind: 'dict' }>, wanted: Extract<Decoded, { kind: 'dict' }>, tolerance: number): boolean {
  if (got.entries.length !== wanted.entries.length) return false;
  const loose = got.plain || wanted.plain;
  const keyText = (key: unknown) =>
    loose && typeof key === 'number' ? String(key) : loose && typeof key === 'string' ? key : JSON.stringify(key);
  const values = new Map(got.entries.map(([key, value]) => [keyText(key), value]));
  return wanted.entries.every(([key, value]) => values.has(keyText(key)) && sameValue(values.get(keyText(key)), value, tolerance));
}
