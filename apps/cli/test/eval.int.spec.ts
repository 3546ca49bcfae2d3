import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Etude, etude, messagesIn, ROOT } from './etude.js';
import { stackForTests } from './stack-for-tests.js';
import { testFolder } from '@etude/test-support/test-folder';

const SAMPLE = `${ROOT}examples/eval/sample.jsonl`;

interface Line {
  readonly kind: string;
  readonly id: string;
  readonly task: string;
}

const folder = testFolder(afterAll);

/** A script's answer to a problem in another format. */
const OTHER = `
  - name: kattis
    match: 'Is the number even'
    reply: |
      \`\`\`python
      print('YES' if int(input()) % 2 == 0 else 'NO')
      \`\`\`
`;

/** The script of the sample, and the same answers for an agent in steps, which gives each as its final answer in the first step. */
function scriptOfBoth(): string {
  const script = readFileSync(`${ROOT}examples/eval/model.yaml`, 'utf8');
  const [, rules = ''] = /^rules:\n([^]*)^default:/m.exec(script) ?? [];
  const final = rules
    .replaceAll('```python', 'FINAL ANSWER\n      ```python')
    .replaceAll('Write the solution.', 'Step 1 of')
    .replaceAll('# Critique', '# Attempts so far');
  const path = join(folder, 'model.yaml');
  writeFileSync(
    path,
    script.replace(/^rules:\n/m, () => `rules:\n${final}${OTHER}`),
  );
  return path;
}

describe('eval run', () => {
  const home = stackForTests(scriptOfBoth());
  const run = (...args: string[]) => etude(['eval', 'run', ...args, '--home', home, '--json']);

  it('counts solved problems and attempts', async () => {
    const ran = await run('--format', 'humaneval', SAMPLE, '--attempts', '2');
    expect(ran.exit).toBe(0);
    const all = messagesIn<Line>(ran);
    const ids = all.flatMap(({ kind, id }) => (kind === 'problem' ? [id] : []));
    expect(ids.toSorted()).toEqual([0, 1, 2, 3, 4].map((n) => `Etude/${n}`));
    expect(all.at(-1)).toMatchObject({ problems: 5, passAt1: 0.8, verdicts: { AC: 4, WA: 1 }, attempts: 7, bySkill: 0, scripted: true });
    // Seven answers and two critiques. A first attempt has a draft only if memory already holds something.
    const { modelCalls } = all.at(-1) as object as { modelCalls: number };
    expect(modelCalls).toBeGreaterThanOrEqual(9);
    expect(modelCalls).toBeLessThanOrEqual(14);
  });

  it('gives the same exact verdicts with the strategy codeact', async () => {
    const ran = await run('--format', 'humaneval', SAMPLE, '--attempts', '2', '--strategy', 'codeact');
    expect(ran.exit).toBe(0);
    expect(messagesIn(ran).at(-1)).toMatchObject({ problems: 5, passAt1: 0.8, verdicts: { AC: 4, WA: 1 }, attempts: 7 });
  });

  it('resumes after an interruption and submits no problem twice', async () => {
    const first = new Etude(['eval', 'run', '--format', 'humaneval', SAMPLE, '--concurrency', '1', '--home', home, '--json']);
    await first.says('"Etude/1"');
    first.child.kill('SIGINT');
    const { exit, stderr } = await first.ended;
    expect(exit).toBe(130);
    const [, id = ''] = /--resume (\S+) continues/.exec(stderr) ?? [];
    const after = messagesIn<Line>(await run('--format', 'humaneval', SAMPLE, '--resume', id));
    expect(after.at(-1)).toMatchObject({ kind: 'summary', run: id, problems: 5, passAt1: 0.8 });
    expect(after.filter(({ kind }) => kind === 'problem')).toEqual(expect.arrayContaining(messagesIn<Line>(await first.ended)));
    const tasks = await etude(['tasks', 'list', '--label', `eval=${id}`, '--home', home, '--json']);
    expect((JSON.parse(tasks.stdout) as { tasks: unknown[] }).tasks).toHaveLength(5);
  });

  it('judges Kattis packages by their secret cases, and refuses those with a validator of their own', async () => {
    const files = {
      'even/problem.yaml': 'name: Even\n',
      'even/problem_statement/problem.en.tex': 'Is the number even?',
      'even/data/sample/1.in': '2\n',
      'even/data/sample/1.ans': 'Yes\n',
      'even/data/secret/1.in': '3\n',
      'even/data/secret/1.ans': 'No\n',
      'odd/problem.yaml': 'validation: custom\n',
    };
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, 'packages', name)), { recursive: true });
      writeFileSync(join(folder, 'packages', name), text);
    }
    const ran = await run(join(folder, 'packages'), '--attempts', '1');
    expect(ran.exit).toBe(1);
    const [refused, problem, summary] = messagesIn(ran);
    expect(refused).toMatchObject({ kind: 'refused', id: 'odd', reason: expect.stringContaining('validator of its own') });
    expect(problem).toMatchObject({ id: 'even', verdict: 'AC' });
    expect(summary).toMatchObject({ problems: 1, passAt1: 1, errors: 0, refused: 1 });
  });
});
