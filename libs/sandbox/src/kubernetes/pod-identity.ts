import { createHash, createHmac } from 'node:crypto';
import { z } from 'zod';
import { unavailable } from '../sandbox-driver.js';

/** Labels of sandbox pods. */
export const LABELS = {
  /** The installation that the pod belongs to; its controllers share one pool. */
  pool: 'etude.dev/pool',
  template: 'etude.dev/template',
  /** Of the pod's specification: a changed template retires the pods of the old one. */
  digest: 'etude.dev/template-digest',
  slot: 'etude.dev/slot',
  /** `warm` or `claimed`; written behind the claim, so the pod itself knows sooner. */
  state: 'etude.dev/state',
  /** The controller that created it, later the one that claimed it. */
  controller: 'etude.dev/controller',
  /** What the pod's token is made from, together with the installation's secret. Random, so it also tells pods of one name apart. */
  nonce: 'etude.dev/nonce',
} as const;

const digest = (text: string) => createHash('sha256').update(text).digest('hex');

/**
 * A pod's name says which of the template's places it takes. Two controllers that fill the same place meet in the API server, where the
 * second is told that the name is taken: so there are never more pods than places, whoever counts.
 */
export const podNameOf = (installation: string, template: string, slot: number) => `${installation}-${template}-${slot}`;

/** What the supervisor says its name is. A pod's name is used again after its end, its uid never. */
export const supervisorNameOf = (pod: { readonly name: string; readonly uid: string }) => `${pod.name}/${pod.uid}`;

/** What lets a controller bind the pod. The pod itself holds only its digest. */
export const tokenOf = (secret: string, nonce: string) => createHmac('sha256', secret).update(nonce).digest('hex');

export const tokenDigestOf = (token: string) => digest(token);

/** A number that is the same for the same text in every process. */
export const numberOf = (text: string) => Number.parseInt(digest(text).slice(0, 8), 16);

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
    throw unavailable(`this is not the place of a sandbox pod: ${(error as Error).message}`);
  }
}
