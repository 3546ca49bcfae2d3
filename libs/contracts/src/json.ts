import { z } from 'zod';
import { EtudeError } from './errors.js';

export type Json = z.core.util.JSONType;

/** Checks values instead of using a zod schema: zod drops the key "__proto__" of an object. */
function isJson(value: unknown): boolean {
  const left: unknown[] = [value];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === 'number' ? !Number.isFinite(one) : one !== null && !['string', 'boolean', 'object'].includes(typeof one))
      return false;
    if (typeof one === 'object' && one !== null) for (const item of Object.values(one)) left.push(item);
  }
  return true;
}

export const Json = z.unknown().refine(isJson, 'must be JSON') as unknown as z.ZodType<Json>;

const isJsonObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value);

export const JsonObject = z.unknown().refine(isJsonObject, 'must be an object') as unknown as z.ZodType<Record<string, Json>>;

/** The value of a JSON text; undefined for any other text. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isDeeper(data: unknown, levels: number): boolean {
  if (typeof data !== 'object' || data === null) return false;
  return levels === 0 || Object.values(data).some((value) => isDeeper(value, levels - 1));
}

/** Levels of nested lists and objects; protobuf decoders go no deeper. */
const DEPTH_MAX = 100;
/** Only a long number, a large exponent or an escaped surrogate can change when it is parsed. */
const MAY_CHANGE = /\d{16}|\d[eE]\+?\d{3}|\\u[dD][89a-fA-F]/;
const SHOWN_CHARS_MAX = 40;

/**
 * Parses JSON without changing numbers or texts. @throws SyntaxError if the text isn't JSON
 * @throws EtudeError INVALID_ARGUMENT for a whole number that would be rounded, a number too large, half a surrogate pair, or deep nesting
 */
export function parseExactJson(text: string): unknown {
  const value = JSON.parse(text) as unknown;
  if (isDeeper(value, DEPTH_MAX)) throw inexact(`It has more than ${DEPTH_MAX} nested levels of lists and objects; use fewer`);
  if (MAY_CHANGE.test(text)) JSON.parse(text, refuseChanged);
  return value;
}

/** A reviver for JSON.parse. @param source the number as it was written */
function refuseChanged(key: string, value: unknown, { source = '' }: { readonly source?: string } = {}): unknown {
  const place = /^\d*$/.test(key) ? '' : `${JSON.stringify(key.slice(0, SHOWN_CHARS_MAX).toWellFormed())}: `;
  if ([key, value].some((one) => typeof one === 'string' && !one.isWellFormed()))
    throw inexact(`${place}a text has half of a surrogate pair, which is not valid Unicode; remove it`);
  if (typeof value !== 'number') return value;
  const isExact = Number.isFinite(value) && (!/^-?\d+$/.test(source) || BigInt(source) === BigInt(value));
  if (isExact) return value;
  throw inexact(`${place}${source.slice(0, SHOWN_CHARS_MAX)} is beyond the numbers that are kept exactly; send it as a text`);
}

const inexact = (what: string) => new EtudeError('INVALID_ARGUMENT', `The JSON can't be stored without changes. ${what}.`);
