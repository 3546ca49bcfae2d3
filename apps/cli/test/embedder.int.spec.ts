import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { isFetched } from '../src/embedder/embedder.js';
import { Etude, etude, ROOT, SLOW, succeeds } from './etude.js';
import { stackForTests } from './stack-for-tests.js';

const folder = process.env['ETUDE_EMBEDDER_PATH'] ?? `${ROOT}.etude/cache/embedder`;
const why = isFetched(folder) ? '' : `, skipped as the sentence model is not in ${folder}`;
const env = { ETUDE_EMBEDDER: 'sentence', ETUDE_EMBEDDER_PATH: folder };

interface Status {
  readonly embedding: { readonly pid: number; readonly model: string; readonly served: number; readonly queue: number } | null;
  readonly processes: ReadonlyArray<{ readonly name: string; readonly pid: number; readonly restarts: number }>;
}

describe.skipIf(why !== '')(`the embedding process of a stack${why}`, () => {
  const home = stackForTests(SLOW, { env: async () => env });
  const run = (...args: string[]) => etude([...args, '--home', home], env);
  const json = async <Answer>(...args: string[]) => JSON.parse((await succeeds(run(...args, '--json'))).stdout) as Answer;
  const status = () => json<Status>('status');

  it('is shown with its model and its work', async () => {
    await succeeds(run('memory', 'store', 'fact', 'The kettle is blue.'));
    const { embedding, processes } = await status();
    const { pid } = processes.find(({ name }) => name === 'embedder') ?? {};
    expect(embedding).toMatchObject({ pid, model: 'all-minilm-l6-v2', queue: 0 });
    expect(embedding?.served).toBeGreaterThan(0);
    expect((await run('status')).stdout).toMatch(/embedder +sentence: pid \d+, all-minilm-l6-v2, \d+ MiB, \d+ texts served/);
  });

  it('is killed during an import, which then is whole and embedded no chunk again that was stored', async () => {
    const chunks = 200;
    const file = join(home, 'book.md');
    writeFileSync(
      file,
      Array.from({ length: chunks }, (_, i) => `# Part ${i}\n\nWhat part ${i} tells about ${'words '.repeat(60)}\n`).join('\n'),
    );
    const before = (await status()).embedding?.served ?? 0;
    const importing = new Etude(['memory', 'import', file, '--home', home, '--json'], env);
    const { pid, served } = await until(async () => {
      const { embedding } = await status();
      return embedding !== null && embedding.served - before > 64 ? embedding : null;
    });
    process.kill(pid, 'SIGKILL');
    expect(JSON.parse((await succeeds(importing.ended)).stdout)).toMatchObject({ outcome: 'added', document: { chunks } });
    const { embedding, processes } = await status();
    expect(processes.find(({ name }) => name === 'embedder')).toMatchObject({ pid: embedding?.pid, restarts: 1 });
    // The chunks that remained, those of the interrupted call among them, and the document itself.
    expect(embedding?.served).toBeLessThanOrEqual(chunks - (served - before) + 64 + 1);
    const { documents } = await json<{ documents: unknown[] }>('memory', 'documents', 'list');
    expect(documents).toHaveLength(1);
    expect(JSON.parse((await succeeds(run('memory', 'import', file, '--json'))).stdout)).toMatchObject({ outcome: 'unchanged' });
  });
});
