import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { isFetched } from '../src/embedder/embedder.js';
import { findStack } from '../src/home/stack-state.js';
import { Etude, etude, ROOT, SLOW, succeeds } from './etude.js';
import { stackForTests } from './stack-for-tests.js';

const folder = process.env['ETUDE_EMBEDDER_PATH'] ?? `${ROOT}.etude/cache/embedder`;
const why = isFetched(folder) ? '' : `, skipped as the sentence model is not in ${folder}`;
const env = { ETUDE_EMBEDDER: 'sentence', ETUDE_EMBEDDER_PATH: folder };

describe.skipIf(why !== '')(`the embedding process of a stack${why}`, () => {
  const home = stackForTests(SLOW, { env: async () => env });
  const run = (...args: string[]) => etude([...args, '--home', home], env);
  const json = async <Answer>(...args: string[]) => JSON.parse((await succeeds(run(...args, '--json'))).stdout) as Answer;
  const embedder = async () => (await findStack(home))?.processes.find(({ name }) => name === 'embedder');

  it('is killed during an import, which then is whole', async () => {
    const chunks = 200;
    const file = join(home, 'book.md');
    writeFileSync(
      file,
      Array.from({ length: chunks }, (_, i) => `# Part ${i}\n\nWhat part ${i} tells about ${'words '.repeat(60)}\n`).join('\n'),
    );
    const importing = new Etude(['memory', 'import', file, '--home', home, '--json'], env);
    await until(async () =>
      (await json<{ layers: { kind: string; records: string }[] }>('memory', 'stats')).layers.some(
        ({ kind, records }) => kind === 'chunk' && records !== '0',
      ),
    );
    process.kill((await embedder())?.pid ?? 0, 'SIGKILL');
    expect(JSON.parse((await succeeds(importing.ended)).stdout)).toMatchObject({ outcome: 'added', document: { chunks } });
    expect(await embedder()).toMatchObject({ restarts: 1 });
    const { documents } = await json<{ documents: unknown[] }>('memory', 'documents', 'list');
    expect(documents).toHaveLength(1);
    expect(JSON.parse((await succeeds(run('memory', 'import', file, '--json'))).stdout)).toMatchObject({ outcome: 'unchanged' });
  });
});
