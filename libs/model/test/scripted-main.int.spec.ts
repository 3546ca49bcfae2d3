import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('../dist/scripted-main.js', import.meta.url));
const README = fileURLToPath(new URL('../README.md', import.meta.url));

it.each([
  [['--script', README], 'README.md'],
  [[], 'usage: scripted-main --script FILE'],
  [['--script', README, '--port', 'many'], 'usage: scripted-main --script FILE'],
])('the scripted model exits with 2 and a reason for %j', async (args, reason) => {
  await expect(promisify(execFile)(process.execPath, [MAIN, ...args])).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining(reason),
  });
});
