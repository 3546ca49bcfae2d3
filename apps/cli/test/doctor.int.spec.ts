import { createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { etude } from './etude.js';

it('says why sandboxes share a user, and what to do', async () => {
  const other = createServer().listen({ path: '\0etude-sandbox-users-2099999998' });
  onTestFinished(() => void other.close());
  const { exit, stdout } = await etude(['doctor'], { ETUDE_SANDBOX_UIDS: '2099999998:1' });
  expect(exit).toBe(0);
  expect(stdout).toMatch(/note +sandbox users +all sandboxes run as one user.*set ETUDE_SANDBOX_UIDS/);
});

it('names a wrong range of users', async () => {
  const { stdout } = await etude(['doctor'], { ETUDE_SANDBOX_UIDS: 'many' });
  expect(stdout).toMatch(/note +sandbox users +[^]*ETUDE_SANDBOX_UIDS has a wrong value/);
});
