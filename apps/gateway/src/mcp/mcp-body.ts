import type { IncomingMessage } from 'node:http';
import { EtudeError } from '@etude/contracts/errors';
import { isDeeperThan } from '../rest/json-depth.js';
import { textOf } from '../rest/rest-request.js';

/** Of lists and objects in a message; what tools take goes no deeper. */
const NESTING_MAX = 100;

export function isJson({ headers }: IncomingMessage): boolean {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() === 'application/json';
}

/** @throws EtudeError INVALID_ARGUMENT for what is no JSON, or is nested too deep */
export function messageOf(body: Buffer): unknown {
  const text = textOf(body);
  if (isDeeperThan(text, NESTING_MAX)) {
    throw new EtudeError('INVALID_ARGUMENT', `The message is nested deeper than ${NESTING_MAX} lists and objects; make it flatter.`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new EtudeError('INVALID_ARGUMENT', `The message is not JSON: ${(error as Error).message}`);
  }
}
