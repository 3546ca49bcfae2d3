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
  if (MAY_CHANGE.test(text)) refuseChanged(text);
  return value;
}

/**
 * Goes from each text and each number that may change to the next. Why no reviver: it takes seconds for a few megabytes, in which nobody
 * else is served, and gives up on what is nested deep.
 *
 * @param text that is JSON
 */
function refuseChanged(text: string): void {
  const next = /"|\d{16}|\d[eE]\+?\d{3}/g;
  for (let found = next.exec(text); found !== null; found = next.exec(text)) {
    const isText = found[0] === '"';
    const start = isText ? found.index : numberStart(text, found.index);
    next.lastIndex = isText ? textEnd(text, start) : numberEnd(text, start);
    const token = text.slice(start, next.lastIndex);
    if (!isText) refuseRounded(token, () => placeOf(text, start));
    else if (MAY_CHANGE.test(token)) refuseHalved(token, () => placeOf(text, start));
  }
}

const IN_NUMBER = /[-+.\deE]/;

function numberStart(text: string, within: number): number {
  let start = within;
  while (start > 0 && IN_NUMBER.test(text.charAt(start - 1))) start -= 1;
  return start;
}

function numberEnd(text: string, start: number): number {
  let end = start;
  while (end < text.length && IN_NUMBER.test(text.charAt(end))) end += 1;
  return end;
}

function textEnd(text: string, start: number): number {
  const stop = /["\\]/g;
  stop.lastIndex = start + 1;
  while (stop.exec(text)?.[0] === '\\') stop.lastIndex += 1;
  return stop.lastIndex;
}

const KEY_BEFORE = /("(?:[^"\\]|\\.)*")\s*:\s*$/;
const LOOKED_BACK_CHARS = 300;

/** The key whose value begins here, for people; '' where there is none. */
function placeOf(text: string, start: number): string {
  const [, key] = KEY_BEFORE.exec(text.slice(Math.max(0, start - LOOKED_BACK_CHARS), start)) ?? [];
  return key === undefined ? '' : `${JSON.stringify((JSON.parse(key) as string).slice(0, SHOWN_CHARS_MAX).toWellFormed())}: `;
}

function refuseHalved(token: string, place: () => string): void {
  const value = JSON.parse(token) as string;
  if (value.isWellFormed()) return;
  const shown = JSON.stringify(value).slice(0, SHOWN_CHARS_MAX);
  throw inexact(`${place()}the text ${shown} has half of a surrogate pair, which is no Unicode; leave it out`);
}

function refuseRounded(token: string, place: () => string): void {
  const value = Number(token);
  const shown = () => `${place()}${token.length > SHOWN_CHARS_MAX ? `${token.slice(0, SHOWN_CHARS_MAX)}...` : token}`;
  if (!Number.isFinite(value)) throw inexact(`${shown()} is larger than any number that is kept; send it as a text`);
  if (WHOLE.test(token) && BigInt(token) !== BigInt(value))
    throw inexact(`${shown()} is a whole number beyond 2^53, which would be rounded to ${BigInt(value)}; send it as a text`);
}

const inexact = (what: string) => new EtudeError('INVALID_ARGUMENT', `The JSON can't be taken as it is written. ${what}.`);
