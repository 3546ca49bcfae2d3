import type { EtudeError } from '@etude/contracts/errors';
import { decodingProblem, type packageDefinition } from '@etude/contracts/grpc';
import { unknownFields } from '../wire/unknown-fields.js';
import { invalid, refuseAny } from '../wire/validation.js';
import { sizeProblem } from './request-limits.js';

type Services = ReturnType<typeof packageDefinition>;

/** As the decoder says it. */
const DEEP = /recursion depth/;
const TOO_DEEP = 'has lists and objects nested deeper than a message may have them; make it flatter, or give what is inside as text';
const undecodable = (problem: string) =>
  `is not a valid message: ${problem}. Text must be UTF-8, and both sides must use the same .proto files`;

const refused = new WeakMap<object, EtudeError>();

/** The services with decoders that leave a request undecoded which is too large; `checkRequest` says so to its caller. */
export function withinLimits(services: Services): Services {
  const limited = Object.entries(services).map(([service, methods]) => [
    service,
    Object.fromEntries(
      Object.entries(methods).map(([name, method]) => {
        const requestDeserialize = (bytes: Buffer): object => {
          const problem = sizeProblem(service, name, bytes);
          const request = method.requestDeserialize(problem === null ? bytes : Buffer.alloc(0)) as object;
          if (problem !== null) refused.set(request, problem);
          return request;
        };
        return [name, { ...method, requestDeserialize }];
      }),
    ),
  ]);
  return Object.fromEntries(limited) as Services;
}

/**
 * @throws EtudeError INVALID_ARGUMENT where a request does not decode, has too many entries, or fields that this server does not know;
 *   PAYLOAD_TOO_LARGE
 */
export function checkRequest(request: object): void {
  const tooLarge = refused.get(request);
  if (tooLarge !== undefined) throw tooLarge;
  const problem = decodingProblem(request);
  if (problem !== undefined) {
    throw invalid([{ field: '(request)', description: DEEP.test(problem) ? TOO_DEEP : undecodable(problem) }]);
  }
  refuseAny(unknownFields(request));
}
