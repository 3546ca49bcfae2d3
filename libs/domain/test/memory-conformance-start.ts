import { errorCode } from '@etude/contracts/errors';
import { expect, it, onTestFinished, type TestContext } from 'vitest';

/** An empty memory of the kind under test, and the function that closes it. */
export interface MemoryUnderTest<T> {
  readonly memory: T;
  close?(): Promise<void> | void;
}

export type MakeMemory<T> = () => Promise<MemoryUnderTest<T>>;

/** Opens a memory for one test, and closes it when the test ends. */
export async function start<T>(make: MakeMemory<T>): Promise<T> {
  const made = await make();
  onTestFinished(async () => made.close?.());
  return made.memory;
}

/** `it` for tests that each get an empty memory of their own, which is closed when the test ends. */
export const withMemory = <T>(make: MakeMemory<T>) =>
  it.extend<{ memory: T }>({
    memory: async ({ task: _task }: TestContext, use: (memory: T) => Promise<void>) => {
      const made = await make();
      await use(made.memory);
      await made.close?.();
    },
  });

/** The scope of the whole tenant: all its agents and users. */
export const ALL = { tenant: 'acme', agent: null };

/** Scopes that the types forbid, but that a faulty caller can pass. */
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

/** Requires that every call is refused because its scope has no tenant. */
export async function requireRefusals(...calls: ReadonlyArray<Promise<unknown>>): Promise<void> {
  const codes = await Promise.all(calls.map((call) => call.then(() => 'none', errorCode)));
  expect(codes).toEqual(calls.map(() => 'TENANT_MISSING'));
}
