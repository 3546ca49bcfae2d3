import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findStack } from '../src/home/stack-state.js';
import { Etude, messagesIn } from './etude.js';
import { testFolder } from '@etude/test-support/test-folder';

it('the demo solves the second round with skills and fewer model calls, and leaves no process running', async () => {
  const home = testFolder();
  const demo = new Etude(['demo', '--keep', '--json', '--home', home]);
  await demo.says('"kind":"console"');
  const [, address = ''] = /"address":"(http[^"]+\/console\/)#key=/.exec(demo.stdout) ?? [];
  expect(await (await fetch(address)).text()).toContain('<title>Etude</title>');
  demo.child.kill('SIGINT');
  const { exit, stderr } = await demo.ended;
  expect({ exit, stderr }).toMatchObject({ exit: 0, stderr: expect.stringContaining('not from a model') });
  expect(stderr).toContain(`stay in ${join(home, 'demo')} until the next demo`);
  const lines = messagesIn<Record<string, unknown>>(await demo.ended);
  const summary = lines.find(({ kind }) => kind === 'summary') as {
    firstRound: { modelCalls: number };
    secondRound: { modelCalls: number; bySkill: number };
  };
  expect(summary).toMatchObject({
    kind: 'summary',
    firstRound: { problems: 6, passAt1: 1 },
    secondRound: { problems: 6, passAt1: 1 },
    mended: true,
    scripted: true,
  });
  // The agent's worker was killed, and another worker continued with the agent's scratchpad.
  const told = JSON.stringify(lines);
  for (const kept of ['"workerChanged":{"epoch":2}', 'before: ', '**Files Already Read:**', 'fs_read(shop/prices.py) again'])
    expect(told).toContain(kept);
  expect(summary.secondRound.modelCalls).toBeLessThan(summary.firstRound.modelCalls);
  expect(summary.secondRound.bySkill).toBeGreaterThan(0);
  expect(lines.find(({ kind }) => kind === 'facts')).toMatchObject({ facts: expect.arrayContaining([expect.anything()]) });
  expect(await findStack(join(home, 'demo'))).toBeNull();
});
