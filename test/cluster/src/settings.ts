import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Reports a long step. */
export type Note = (line: string) => void;

/** The checkout. Both src/ and dist/ lie three folders below it. */
export const root = fileURLToPath(new URL('../../..', import.meta.url));
export const kubenodeSources = join(root, 'test/cluster/kubenode');

/** ETUDE_CLUSTER_CACHE: where built programs and images are kept. */
export const cacheDir = (): string => process.env['ETUDE_CLUSTER_CACHE'] ?? join(root, '.etude/cache/cluster');
