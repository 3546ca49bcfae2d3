import { createHmac, hash } from 'node:crypto';
import { z } from 'zod';
import { unavailable } from '../sandbox-driver.js';

export const LABELS = {
  /** The installation that the pod belongs to; its controllers share one pool. */
  pool: 'etude.dev/pool',
  template: 'etude.dev/template',
  /** Digest of the pod's specification. When the template changes, pods with the old digest are retired. */
  digest: 'etude.dev/template-digest',
  slot: 'etude.dev/slot',
  /** `warm` or `claimed`. Written some time after the claim, so only the pod itself knows the current state. */
  state: 'etude.dev/state',
  /** The controller that created the pod, later the controller that claimed it. */
  controller: 'etude.dev/controller',
  /** Random text. The pod's token is made from it and the installation's secret. */
  nonce: 'etude.dev/nonce',
} as const;

/** A pod is named after its slot. The API server refuses a second pod of that name, so a template never has more pods than slots. */
export const podNameOf = (installation: string, template: string, slot: number) => `${installation}-${template}-${slot}`;

/** The name that the pod's supervisor gives in its hello. It contains the uid, because a pod's name is used again after its end. */
export const supervisorNameOf = (pod: { readonly name: string; readonly uid: string }) => `${pod.name}/${pod.uid}`;

/** The token with which a controller binds the pod. The pod itself has only the token's digest. */
export const tokenOf = (secret: string, nonce: string) => createHmac('sha256', secret).update(nonce).digest('hex');

export const tokenDigestOf = (token: string) => hash('sha256', token);

/** A hash of the text, equal in every process. */
export const numberOf = (text: string) => Number.parseInt(hash('sha256', text).slice(0, 8), 16);

/** The address of a claimed pod, for other controllers of the installation. It contains no secret. */
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

/** @throws EtudeError SANDBOX_UNAVAILABLE if the text is not the address of a pod */
export function readPlace(text: string): PodPlace {
  try {
    return PodPlace.parse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')));
  } catch (error) {
    throw unavailable(`this is not the address of a sandbox pod: ${(error as Error).message}`);
  }
}
