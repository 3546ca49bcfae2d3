import { EtudeError } from '@etude/contracts/errors';
import { UNTRACED } from '@etude/contracts/tracing';
import { expect, it } from 'vitest';
import { observed } from './memory-access.js';

const { signal } = new AbortController();

it('logs calls of the rerank server that fail', async () => {
  const logged: object[] = [];
  const log = (_message: string, details: object) => void logged.push(details);
  expect(await observed({ rank: async () => [1, 0] }, log, UNTRACED).rank('q', ['a', 'b'], signal)).toEqual([1, 0]);
  const away = observed({ rank: () => Promise.reject(new EtudeError('MODEL_UNAVAILABLE', 'it sent nothing for 5 s')) }, log, UNTRACED);
  await expect(away.rank('q', ['a'], signal)).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE' });
  expect(logged).toEqual([{ code: 'MODEL_UNAVAILABLE', reason: 'it sent nothing for 5 s' }]);
});
