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

/** Whether lists and objects are nested in each other more often than so. Decoders of protobuf give up where JSON still goes on. */
export function isDeeper(data: unknown, levels: number): boolean {
  if (typeof data !== 'object' || data === null) return false;
  return levels === 0 || Object.values(data).some((value) => isDeeper(value, levels - 1));
}

/** What a text must have before a number or text in it can come out as another one. */
const MAY_CHANGE = /\d{16}|\d[eE]\+?\d{3}|\\u[dD][89a-fA-F]/;
const WHOLE = /^-?\d+$/;
const SHOWN_CHARS_MAX = 40;

/**
 * JSON whose numbers and texts are what was written: nothing is rounded, and no text is one that can't be sent on.
 *
 * @throws SyntaxError for what is no JSON; EtudeError INVALID_ARGUMENT for a whole number beyond 2^53 that would be rounded, for one that
 *   is too large for any number, and for half of a surrogate pair
 */
export function parseExactJson(text: string): unknown {
  const value = JSON.parse(text) as unknown;
  if (MAY_CHANGE.test(text)) JSON.parse(text, refuseChanged);
  return value;
}

/** A reviver, told by the parser what was written. */
function refuseChanged(key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source ?? '';
  const place = key === '' ? '' : `${JSON.stringify(key.slice(0, SHOWN_CHARS_MAX).toWellFormed())}: `;
  if (typeof value === 'number') refuseRounded(place, value, source);
  if (!key.isWellFormed() || (typeof value === 'string' && !value.isWellFormed()))
    throw inexact(
      `${place}the text ${JSON.stringify(value ?? key).slice(0, SHOWN_CHARS_MAX)} has half of a surrogate pair, which is no Unicode; leave it out`,
    );
  return value;
}

function refuseRounded(place: string, value: number, source: string): void {
  const shown = source.length > SHOWN_CHARS_MAX ? `${source.slice(0, SHOWN_CHARS_MAX)}...` : source;
  if (!Number.isFinite(value)) throw inexact(`${place}${shown} is larger than any number that is kept; send it as a text`);
  if (WHOLE.test(source) && BigInt(source) !== BigInt(value))
    throw inexact(`${place}${shown} is a whole number beyond 2^53, which would be rounded to ${BigInt(value)}; send it as a text`);
}

const inexact = (what: string) => new EtudeError('INVALID_ARGUMENT', `The JSON can't be taken as it is written. ${what}.`);
