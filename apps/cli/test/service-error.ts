import type { EtudeError } from '@etude/contracts/errors';
import { encodeStatus, STATUS_DETAILS_KEY } from '@etude/contracts/rich-status';
import { Metadata, type status } from '@grpc/grpc-js';

/** As a call throws it: from a server of ours where there is an answer, else from the connection itself. */
export function serviceError(code: status, details: string, answer?: EtudeError): Error {
  const metadata = new Metadata();
  if (answer) metadata.set(STATUS_DETAILS_KEY, encodeStatus(answer));
  return Object.assign(new Error(`${code}: ${details}`), { code, details, metadata });
}
