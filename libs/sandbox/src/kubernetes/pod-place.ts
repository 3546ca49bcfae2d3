import { EtudeError } from '@etude/contracts/errors';
import { z } from 'zod';

/**
 * Where a claimed pod is, for another controller of the installation. It holds no secret: the token that the pod asks for is made from the
 * nonce and the installation's secret.
 */
const PodPlace = z.strictObject({
  template: z.string(),
  pod: z.string(),
  uid: z.string(),
  ip: z.union([z.ipv4(), z.ipv6()]),
  nonce: z.string(),
  claim: z.string(),
});
export type PodPlace = z.infer<typeof PodPlace>;

export const placeOf = (place: PodPlace) => Buffer.from(JSON.stringify(place)).toString('base64url');

/** @throws EtudeError SANDBOX_UNAVAILABLE where it is no pod's */
export function readPlace(text: string): PodPlace {
  try {
    return PodPlace.parse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')));
  } catch (error) {
    throw new EtudeError('SANDBOX_UNAVAILABLE', `this is not the place of a sandbox pod: ${(error as Error).message}`, {
      metadata: { exit: 'infra' },
    });
  }
}
