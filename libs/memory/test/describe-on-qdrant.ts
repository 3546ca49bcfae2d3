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
  /** Where the tests cannot do with every source; all by default. */
  readonly kinds?: readonly QdrantSource['kind'][];
  /** Asked right before the server starts. */
  readonly options?: () => TestQdrantOptions;
}

/**
 * Tests on a server of their own, which ends behind them. They are skipped where there is none of these kinds; the line printed above
 * says what there is. `server` is there once hooks and tests run.
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
