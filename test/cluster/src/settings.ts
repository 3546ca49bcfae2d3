import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Reports a long step. */
export type Note = (line: string) => void;

/** The checkout, three folders above src/ and dist/. */
export const root = fileURLToPath(new URL('../../..', import.meta.url));
export const kubenodeSources = join(root, 'test/cluster/kubenode');

/** Folder of built programs and images (ETUDE_CLUSTER_CACHE). */
export const cacheDir = (): string => process.env['ETUDE_CLUSTER_CACHE'] ?? join(root, '.etude/cache/cluster');
