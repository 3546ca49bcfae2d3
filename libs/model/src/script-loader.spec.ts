import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadScript, parseScript } from './script.js';

const complaint = (text: string) => {
  try {
    parseScript(text, 'demo.yaml');
  } catch (error) {
    return error as Error & { code: string };
  }
  return expect.fail('the script was taken');
};

describe('script files', () => {
  it('takes YAML and JSON alike', () => {
    const yaml = 'name: demo\nrules:\n  - match: hello\n    reply: |\n      hi\n      there\n';
    expect(parseScript(yaml, 'a')).toEqual(
      parseScript(JSON.stringify({ name: 'demo', rules: [{ match: 'hello', reply: 'hi\nthere\n' }] }), 'b'),
    );
  });

  it.each([
    ['rules:\n  - match: a\n    reply: x\n  - name: sum\n    replay: y\n', 'demo.yaml, rule 2 (sum), field replay: is no field'],
    ['rules:\n  - match: a\n', 'demo.yaml, rule 1: has no answer'],
    ['rules:\n  - match: a\n    reply: x\n    status: 500\n', 'demo.yaml, rule 1: has several answers'],
    ['rules:\n  - match: {regex: "(a"}\n    reply: x\n', 'demo.yaml, rule 1, field match: must be a text'],
    ['rules:\n  - reply: x\n    delay_ms: -5\n', 'demo.yaml, rule 1, field delay_ms'],
    ['rules:\n  - reply: x\n    after_failures: 1\n', 'demo.yaml, field failure_mark: is needed by after_failures'],
    ['rules: [\n', 'demo.yaml: '],
    ['', 'demo.yaml, the script'],
  ])('says what is wrong with %j', (text, message) => {
    expect(complaint(text)).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) });
  });

  it('reads replies from files beside the script', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'script-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    await writeFile(join(directory, 'answer.py'), 'print(42)\n');
    await writeFile(join(directory, 'script.yaml'), 'rules:\n  - reply_file: answer.py\n');
    expect((await loadScript(join(directory, 'script.yaml'))).rules[0]?.reply).toBe('print(42)\n');
    await writeFile(join(directory, 'script.yaml'), 'rules:\n  - reply_file: gone.py\n');
    await expect(loadScript(join(directory, 'script.yaml'))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('gone.py'),
    });
    await expect(loadScript(join(directory, 'none.yaml'))).rejects.toMatchObject({ message: expect.stringContaining('none.yaml') });
  });
});
