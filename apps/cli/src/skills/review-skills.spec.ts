import { expect, it } from 'vitest';
import { createCli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { readSettings } from '../settings.js';
import { approveSkill } from './review-skills.js';

const cli = createCli(readSettings({}), { timeout: 30, address: 'far:1' }, new AbortController().signal);

it.each([
  ['s', {}, './etude skills review s --address far:1 prints the whole line'],
  ['s@2', { agent: 'a', user: 'x y' }, "./etude skills review s@2 --agent a --user 'x y' --address far:1 prints the whole line"],
])('refuses to approve %s unseen, and says what shows it', async (skill, reader, hint) => {
  await expect(approveSkill(cli, skill, reader)).rejects.toMatchObject({
    exit: EXIT.usage,
    message: expect.stringContaining('--digest'),
    hint: [hint],
  });
});
