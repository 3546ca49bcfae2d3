import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { writeBeir } from './beir-files.js';
import { nodeApi } from './sets/node-api.js';
import { perlFaq } from './sets/perl-faq.js';
import { pythonCode } from './sets/python-code.js';
import type { GeneratedSet } from './test-set.js';

export const GENERATED_SETS: readonly GeneratedSet[] = [nodeApi, perlFaq, pythonCode];

/** The folder of a generated set. Makes a missing set. @throws Error if the set's source is not on this machine */
export async function setFolder(set: GeneratedSet, cacheDir: string): Promise<string> {
  const dir = join(cacheDir, set.name);
  if (!existsSync(dir)) writeBeir(dir, await set.make(cacheDir), set);
  return dir;
}
