import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { SkillStatus, UndoPruneResponseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { expect, it } from 'vitest';
import { createCli, readSettings } from '../cli.js';
import { EXIT } from '../errors.js';
import { Output } from '../output.js';
import { pruneSkills, undoPrune } from './review-skills.js';

/** What taking a pruning back prints where the gateway answers this, and what it was asked. */
async function undone(answer: MessageInitShape<typeof UndoPruneResponseSchema>, { json = false } = {}) {
  const cli = createCli(readSettings({}), { timeout: 30 }, new AbortController().signal);
  const [stdout, stderr, asked]: [string[], string[], unknown[]] = [[], [], []];
  const out = new Output({ write: (text) => stdout.push(text) }, { write: (text) => stderr.push(text) }, json);
  const skills = {
    undoPrune: async (request: object) => {
      asked.push(request);
      return create(UndoPruneResponseSchema, answer);
    },
  };
  const exit = await undoPrune({ ...cli, out }, skills, { pruneId: 'p1', requestId: 'r1' });
  return { exit, stdout: stdout.join(''), stderr: stderr.join(''), asked };
}

const back = { name: 'skills/idle', version: 2, agent: 'solver', status: SkillStatus.ACTIVE, statusReason: 'undid the pruning p1' };
const left = { name: 'skills/old', version: 1, agent: 'solver', reason: 'version 2 is in use' };

it('says of each skill that a pruning took what became of it when it is taken back', async () => {
  expect(await undone({ skills: [back], left: [left] })).toEqual({
    exit: EXIT.ok,
    stdout: 'idle@2 is active: undid the pruning p1\n',
    stderr: 'old@1 of "solver" stays archived: version 2 is in use\n',
    asked: [{ pruneId: 'p1', requestId: 'r1' }],
  });
});

it('says that there was nothing to take back, and prints no line', async () => {
  expect(await undone({})).toMatchObject({
    exit: EXIT.ok,
    stdout: '',
    stderr: 'nothing to take back: it is undone, or somebody touched the skills since\n',
  });
});

it('prints both lists as JSON where nothing came back, too', async () => {
  const { stdout } = await undone({ left: [left] }, { json: true });
  expect(JSON.parse(stdout)).toEqual({ skills: [], left: [left] });
});

it.each([{ unusedDays: 3 }, { dryRun: true }])('takes nothing back beside %j', async (more) => {
  const cli = createCli(readSettings({}), { timeout: 30 }, new AbortController().signal);
  await expect(pruneSkills(cli, { undo: 'p1', ...more })).rejects.toMatchObject({
    exit: EXIT.usage,
    message: expect.stringContaining('--undo') as string,
  });
});
