import { truncateSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { testFolder } from '@etude/test-support/test-folder';
import { taskSpec } from './task-request.js';

describe('taskSpec', () => {
  let dir: string;
  const put = (name: string, content: string) => {
    writeFileSync(join(dir, name), content);
    return join(dir, name);
  };
  beforeEach(() => void (dir = testFolder()));

  it('reads prompt, cases and reference from files', async () => {
    const spec = await taskSpec({
      prompt: `@${put('p.txt', 'Add.')}`,
      functionCases: put('c.json', '[{"args":[1,2],"expected":3,"public":true}]'),
      entryPoint: 'add',
      reference: put('r.py', 'def add(a, b): return a + b'),
    });
    expect(spec).toMatchObject({ prompt: 'Add.', referenceSolution: 'def add(a, b): return a + b' });
    expect(spec.evaluator?.kind).toMatchObject({ case: 'functionCases', value: { entryPoint: 'add', cases: [{ public: true }] } });
  });

  it('overrides fields of the spec file by flags and keeps its other fields', async () => {
    const path = put('s.json', '{"prompt":"a","agent":"x","limits":{"attempts":2,"steps":9},"labels":{"k":"1"}}');
    const spec = await taskSpec({ spec: path, attempts: 7, label: { l: '2' }, memory: 'off', untrusted: true });
    expect(spec).toMatchObject({
      prompt: 'a',
      agent: 'x',
      limits: { attempts: 7, steps: 9 },
      labels: { k: '1', l: '2' },
      memory: { off: true, readOnly: true },
      untrusted: true,
    });
  });

  it('names a huge file without reading it', async () => {
    const path = put('huge.bin', '');
    truncateSync(path, 2 ** 30);
    await expect(taskSpec({ prompt: 'a', file: [`huge.bin=${path}`] })).rejects.toThrow(
      'huge.bin is too large (1024.0 MiB): at most 8.0 MiB',
    );
  });

  it('places a file under the given name', async () => {
    const spec = await taskSpec({ prompt: 'a', file: [`data/in.csv=${put('x.csv', '1,2')}`] });
    expect(spec.files.map(({ path, content }) => [path, Buffer.from(content).toString()])).toEqual([['data/in.csv', '1,2']]);
  });

  it('keeps the relative path of a file', async () => {
    const path = relative(process.cwd(), fileURLToPath(import.meta.url));
    const { files } = await taskSpec({ prompt: 'a', file: [path, `./${path}`] });
    expect(files.map((file) => file.path)).toEqual([path, path]);
  });

  it.each([
    ['an absolute path of a file', { prompt: 'a', file: ['/tmp/ops.py'] }, 'NAME=/tmp/ops.py'],
    ['a path of a file above the folder', { prompt: 'a', file: ['../ops.py'] }, 'NAME=../ops.py'],
    ['two evaluators', { prompt: 'a', tests: 't.py', command: 'true' }, 'a task has one evaluator'],
    ['tests without an entry point', { prompt: 'a', tests: 't.py' }, '--tests needs --entry-point'],
    ['a file that is not there', { prompt: '@/nowhere' }, 'there is no file /nowhere'],
  ])('refuses %s', async (_what, options, message) => {
    await expect(taskSpec(options)).rejects.toThrow(message);
  });

  it('names the wrong field of a spec file', async () => {
    await expect(taskSpec({ spec: put('s.json', '{"prompt":1}') })).rejects.toThrow(/s\.json: .*prompt/);
    await expect(taskSpec({ spec: put('t.json', '{"promt":"x"}') })).rejects.toThrow(/t\.json: .*promt/);
  });
});
