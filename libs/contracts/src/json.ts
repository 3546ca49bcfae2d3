import { z } from 'zod';
import { EtudeError } from './errors.js';

export type Json = z.core.util.JSONType;

/** By value, and not by schema: those of zod leave out what an object keeps under the key "__proto__". */
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

/** Any JSON value, with all of its keys. */
export const Json = z.unknown().refine(isJson, 'must be JSON') as unknown as z.ZodType<Json>;

/** JavaScript's name for what an object inherits from: schemas leave it out of names, and no code has a parameter that is called so. */
export const UNNAMEABLE = '__proto__';

/** Whether something is named so in it, itself; values in it may have such keys. */
export function hasUnnameable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, UNNAMEABLE);
}

const isJsonObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value);

/** The same of objects. */
export const JsonObject = z.unknown().refine(isJsonObject, 'must be an object') as unknown as z.ZodType<Record<string, Json>>;

/** Whether lists and objects are nested in each other more often than so. Decoders of protobuf give up where JSON still goes on. */
export function isDeeper(data: unknown, levels: number): boolean {
  if (typeof data !== 'object' || data === null) return false;
  return levels === 0 || Object.values(data).some((value) => isDeeper(value, levels - 1));
}

/** Of lists and objects in each other; decoders of messages go no deeper. */
const DEPTH_MAX = 100;
/** What a text must have before a number or text in it can come out as another one. */
const MAY_CHANGE = /\d{16}|\d[eE]\+?\d{3}|\\u[dD][89a-fA-F]/;
const SHOWN_CHARS_MAX = 40;

/**
 * JSON whose numbers and texts are what was written: nothing is rounded, and no text is one that can't be sent on.
 *
 * @throws SyntaxError for what is no JSON; EtudeError INVALID_ARGUMENT for a whole number beyond 2^53 that would be rounded, for one that
 *   is too large for any number, for half of a surrogate pair, and for what is nested too deep
 */
export function parseExactJson(text: string): unknown {
  const value = JSON.parse(text) as unknown;
  if (isDeeper(value, DEPTH_MAX)) throw inexact(`It is nested deeper than ${DEPTH_MAX} lists and objects; make it flatter`);
  if (MAY_CHANGE.test(text)) JSON.parse(text, refuseChanged);
  return value;
}

/** A reviver. @param source the number as it was written */
function refuseChanged(key: string, value: unknown, { source = '' }: { readonly source?: string } = {}): unknown {
  const place = /^\d*$/.test(key) ? '' : `${JSON.stringify(key.slice(0, SHOWN_CHARS_MAX).toWellFormed())}: `;
  for (const one of [key, value]) {
    if (typeof one !== 'string' || one.isWellFormed()) continue;
    const shown = JSON.stringify(one).slice(0, SHOWN_CHARS_MAX);
    throw inexact(`${place}the text ${shown} has half of a surrogate pair, which is no Unicode; leave it out`);
  }
  if (typeof value !== 'number') return value;
  const shown = `${place}${source.length > SHOWN_CHARS_MAX ? `${source.slice(0, SHOWN_CHARS_MAX)}...` : source}`;
  if (!Number.isFinite(value)) throw inexact(`${shown} is larger than any number that is kept; send it as a text`);
  if (/^-?\d+$/.test(source) && BigInt(source) !== BigInt(value))
    throw inexact(`${shown} is a whole number beyond 2^53, which would be rounded to ${BigInt(value)}; send it as a text`);
  return value;
}

const inexact = (what: string) => new EtudeError('INVALID_ARGUMENT', `The JSON can't be taken as it is written. ${what}.`);
