import { join } from 'node:path';

/** Files of one local stack, all in its home folder. */
export const statePath = (home: string) => join(home, 'stack.json');
/** The API key that the command line uses; readable by its owner only. */
export const keyPath = (home: string) => join(home, 'key');
/** Digests of all keys; what the gateway reads. */
export const keysPath = (home: string) => join(home, 'keys.json');
export const logPath = (home: string, name: string) => join(home, 'logs', `${name}.log`);
export const redisPath = (home: string) => join(home, 'redis');
export const memoryPath = (home: string) => join(home, 'memory.sqlite');
/** Of a Qdrant of this stack's own. */
export const qdrantPath = (home: string) => join(home, 'qdrant');
/** Of the worker that signs evidence about skills; readable by its owner only. */
export const proofSigningKeyPath = (home: string) => join(home, 'skill-signing-key.pem');
/** Keys whose signatures under evidence are believed. */
export const proofPublicKeysPath = (home: string) => join(home, 'skill-public-keys.pem');
