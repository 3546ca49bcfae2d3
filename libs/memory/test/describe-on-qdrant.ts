import {
  describeQdrant,
  findQdrant,
  startQdrant,
  type QdrantSource,
  type TestQdrant,
  type TestQdrantOptions,
} from '@etude/test-support/qdrant';
import { afterAll, beforeAll, describe } from 'vitest';

const START_TIMEOUT_MS = 240_000;
const source = await findQdrant();
console.log(describeQdrant(source));

export interface OnQdrant {
  readonly name: string;
  /** The sources of Qdrant that the tests work with. Default: all. */
  readonly kinds?: readonly QdrantSource['kind'][];
  /** Called just before the server starts. */
  readonly options?: () => TestQdrantOptions;
}

/**
 * Runs tests on their own server, which stops after them. Skips the tests if the source isn't of these kinds. The line printed above names
 * the source. `server` may be called in hooks and tests only.
 */
export function describeOnQdrant({ name, kinds, options }: OnQdrant, tests: (server: () => TestQdrant) => void): void {
  const fits = source.kind !== 'none' && (kinds === undefined || kinds.includes(source.kind));
  describe.skipIf(!fits)(`Qdrant: ${name}`, () => {
    let qdrant: TestQdrant | undefined;
    beforeAll(async () => {
      qdrant = await startQdrant(source, options?.());
    }, START_TIMEOUT_MS);
    afterAll(() => qdrant?.stop());
    tests(() => {
      if (qdrant === undefined) throw new Error('Qdrant was not started yet, or did not start');
      return qdrant;
    });
  });
}
