import { onTestFinished } from 'vitest';

/** What a suite gets: an empty memory of the kind under test, and how to let go of it. */
export interface MemoryUnderTest<T> {
  readonly memory: T;
  close?(): Promise<void> | void;
}

export type MakeMemory<T> = () => Promise<MemoryUnderTest<T>>;

/** Many memories are made and filled; a database over the network takes its time. */
export const PROPERTY_TIMEOUT_MS = 240_000;

/** Opens a memory for one test and closes it with that test. */
export async function start<T>(make: MakeMemory<T>): Promise<T> {
  const made = await make();
  onTestFinished(async () => made.close?.());
  return made.memory;
}

/** Scopes that a caller's types forbid, and that reach a store all the same when something is wrong. */
export const SCOPES_WITHOUT_TENANT = [
  { tenant: '', agent: null },
  { tenant: '  ', agent: 'coder' },
  { tenant: undefined as unknown as string, agent: null },
  { tenant: null as unknown as string, agent: null },
  undefined as unknown as { tenant: string; agent: null },
  { tenant: 'acme', agent: undefined as unknown as null },
  { tenant: '', agent: 'coder', also: ['@tenant'], user: 'ann' },
  { tenant: 'acme', agent: null, also: ['@tenant'], user: 'ann' },
  { tenant: 'acme', agent: 'coder', also: ['@user'] },
  { tenant: 'acme', agent: 'coder', also: ['@user'], user: null },
  { tenant: 'acme', agent: 'coder', also: '@tenant' as unknown as string[], user: 'ann' },
  { tenant: 'acme', agent: 'coder', also: [undefined as unknown as string], user: 'ann' },
];
