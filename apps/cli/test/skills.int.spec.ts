import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '@etude/test-support/ports';
import { describe, expect, it } from 'vitest';
import { etude, ROOT, succeeds } from './etude.js';
import { stackForTests } from './stack-for-tests.js';

const home = stackForTests(`${ROOT}apps/cli/test/slow.yaml`, async () => ({
  ETUDE_GRPC_PORT: String(await freePort()),
  ETUDE_SKILLS_APPROVAL: 'review',
}));
const run = (...args: string[]) => etude([...args, '--home', home]);
const file = (name: string, content: string) => {
  const path = join(home, name);
  writeFileSync(path, content);
  return path;
};
const json = async (...args: string[]) => JSON.parse((await succeeds(run(...args, '--json'))).stdout) as Record<string, unknown>;

const digestOf = async (skill: string) => String((await json('skills', 'get', skill))['digest']);
const approve = async (skill: string) => succeeds(run('skills', 'approve', skill, '--digest', await digestOf(skill)));

const TRIPLE = 'def triple(n: int) -> int:\n    """Triples a number."""\n    return n * 3\n';
const CASES = JSON.stringify([
  { args: [2], expected: 6 },
  { args: [-1], expected: -3 },
  { kwargs: { n: 0 }, expected: 0 },
]);

describe('a skill on the command line', () => {
  it('is tested before it is stored, with the reason for a failure', async () => {
    const good = file('triple.py', TRIPLE);
    const cases = file('cases.json', CASES);
    expect(await run('skills', 'test', good, '--test', cases)).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^passed/) });
    const wrong = file('wrong.py', TRIPLE.replace('n * 3', 'n + 4'));
    expect(await run('skills', 'test', wrong, '--name', 'triple', '--test', cases)).toMatchObject({
      exit: 1,
      stdout: expect.stringMatching(/^reason /),
    });
    expect((await run('skills', 'get', 'triple')).exit).toBe(3);
  });

  it('is added, reviewed, approved and used', async () => {
    const added = await succeeds(
      run('skills', 'add', join(home, 'triple.py'), '--test', join(home, 'cases.json'), '--tag', 'math', '--wait'),
    );
    expect(added.stdout).toMatch(/^triple@1 is pending_review/);
    expect(added.stderr).toContain('skills review triple@1');
    const review = await succeeds(run('skills', 'review', 'triple'));
    expect(review.stdout).toContain('return n * 3');
    expect(review.stderr).toContain(`--digest ${await digestOf('triple')}`);
    expect((await run('skills', 'approve', 'triple', '--digest', '0'.repeat(64))).exit).toBe(6);
    await approve('triple');
    expect(await run('skills', 'use', 'triple', 'n=14')).toMatchObject({ exit: 0, stdout: '42\n' });
    expect(await json('skills', 'use', 'triple', '--json-args', '{"n": 5}')).toMatchObject({ success: true, result: 15 });
    const wrong = await run('skills', 'use', 'triple', 'm=1');
    expect(wrong.exit).not.toBe(0);
    expect(wrong.stderr).toContain('m');
  });

  it('is edited with its existing tests, compared, and rolled back', async () => {
    const next = file('next.py', TRIPLE.replace('return n * 3', 'return n + n + n'));
    expect((await succeeds(run('skills', 'edit', 'triple', next, '--wait'))).stdout).toMatch(/^triple@2 is pending_review/);
    const { stdout } = await succeeds(run('skills', 'diff', 'triple'));
    expect(stdout).toContain('-    return n * 3');
    expect(stdout).toContain('+    return n + n + n');
    expect(stdout).not.toContain('\u001b');
    await approve('triple@2');
    expect((await succeeds(run('skills', 'rollback', 'triple', '--reason', 'slower'))).stdout).toMatch(/^triple@1 is active/);
    expect((await succeeds(run('skills', 'versions', 'triple'))).stdout).toMatch(/triple +2 +default +function +deprecated/);
  });

  it('is exported as a folder, and imported', async () => {
    const folder = join(home, 'out');
    await succeeds(run('skills', 'export', 'triple', folder));
    expect(readFileSync(join(folder, 'SKILL.md'), 'utf8')).toContain('Triples a number.');
    expect((await run('skills', 'export', 'triple', folder)).exit).toBe(2);
    expect((await succeeds(run('skills', 'import', folder, '--agent', 'importer', '--dry-run'))).stdout).toContain('triple');
  });

  it('is requested only by a flag if it is missing', async () => {
    const use = ['skills', 'use', 'quadruple', 'n=1', '--agent', 'solver'];
    expect(await run(...use)).toMatchObject({ exit: 3, stderr: expect.stringContaining('--request-missing') });
    expect((await succeeds(run('skills', 'wanted'))).stdout).not.toContain('quadruple');
    const missing = await run(...use, '--request-missing');
    expect(missing).toMatchObject({ exit: 3, stderr: expect.stringContaining('skills wish wantedSkills/') });
    expect((await succeeds(run('skills', 'wanted'))).stdout).toContain('quadruple');
  });
});

it('shows and changes the settings of an agent', async () => {
  expect((await succeeds(run('agents', 'get', 'solver'))).stdout).toMatch(/approval_mode +review/);
  expect((await succeeds(run('agents', 'set', 'solver', 'approval_mode=threshold', 'max_skills=7'))).stdout).toMatch(/max_skills +7/);
  expect((await succeeds(run('agents', 'list'))).stdout).toMatch(/solver +yes +threshold/);
  expect((await run('agents', 'set', 'solver', 'max_skills=many')).exit).toBe(2);
});
