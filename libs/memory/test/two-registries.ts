import type { OpenRegistries } from '@etude/domain/testing/decisions-property';
import type { TestQdrant } from '@etude/test-support/qdrant';
import { LEXICAL_MODEL, registryOver } from './lexical-registry.js';
import { openOnQdrant } from './qdrant-under-test.js';
import { temporaryStore } from './temporary-store.js';

/** Two that have one SQLite file open. */
export async function twoOnOneFile(): Promise<OpenRegistries> {
  const { store, second, close } = await temporaryStore({ model: LEXICAL_MODEL });
  return { registries: [registryOver(store), registryOver(await second(LEXICAL_MODEL))], close };
}

export async function twoOnQdrant(server: () => TestQdrant): Promise<OpenRegistries> {
  const { store, close } = await openOnQdrant(server, LEXICAL_MODEL)();
  return { registries: [registryOver(store), registryOver(store)], close };
}
