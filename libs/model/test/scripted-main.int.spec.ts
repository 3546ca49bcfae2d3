import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { testFolder } from '@etude/test-support/test-folder';
import { describe, expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('../dist/scripted-main.js', import.meta.url));
const run = promisify(execFile);
describe('the scripted model as a process', () => {
  it('only checks the script with --check', async () => {
    const folder = testFolder();
    const [script, text] = [join(folder, 'good.yaml'), join(folder, 'README.md')];
    await writeFile(script, 'name: demo\ndefault: {reply: hi}\n');
    await writeFile(text, '# Title\n\nSome text.\n');
    expect(await run(process.execPath, [MAIN, '--script', script, '--check'])).toEqual({ stdout: '', stderr: '' });
    await expect(run(process.execPath, [MAIN, '--script', text, '--check'])).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/README\.md is wrong/),
    });
  });

  it.each([
    [[], '--script is missing'],
    [['--script', 'x', '--port', 'many'], '--port must be 0 to 65535'],
  ])('exits with 2 and a reason for %j', async (args, reason) => {
    await expect(run(process.execPath, [MAIN, ...args])).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining(reason) });
  });
});
