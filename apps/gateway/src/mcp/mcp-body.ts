import type { IncomingMessage } from 'node:http';
import { EtudeError } from '@etude/contracts/errors';
import { readMessage, type ReadMessage } from '@etude/mcp/read-message';
import { isDeeperThan } from '../rest/json-depth.js';
import { textOf } from '../rest/rest-request.js';

/** Of lists and objects in a message; what tools take goes no deeper. */
const NESTING_MAX = 100;

export function isJson({ headers }: IncomingMessage): boolean {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() === 'application/json';
}

/** @throws EtudeError INVALID_ARGUMENT for what is no UTF-8 or nested too deep */
export function messageOf(body: Buffer): ReadMessage {
  const text = textOf(body);
  if (isDeeperThan(text, NESTING_MAX)) {
    throw new EtudeError('INVALID_ARGUMENT', `The message is nested deeper than ${NESTING_MAX} lists and objects; make it flatter.`);
  }
  return readMessage(text);
}
