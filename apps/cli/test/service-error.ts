import type { EtudeError } from '@etude/contracts/errors';
import { encodeStatus, STATUS_DETAILS_KEY } from '@etude/contracts/rich-status';
import { Metadata, type status } from '@grpc/grpc-js';

/** The error of a call: from a service if `answer` is given, else from the connection. */
export function serviceError(code: status, details: string, answer?: EtudeError): Error {
  const metadata = new Metadata();
  if (answer) metadata.set(STATUS_DETAILS_KEY, encodeStatus(answer));
  return Object.assign(new Error(`${code}: ${details}`), { code, details, metadata });
}
