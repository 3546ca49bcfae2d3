import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RunningStudent, startStudent } from '@etude/test-support/student';
import { afterAll, describe, expect, it } from 'vitest';
import type { Figures } from '../src/eval/figures.js';
import { etude, messagesIn, ROOT, succeeds } from './etude.js';
import { stackForTests } from './stack-for-tests.js';
import { testFolder } from '@etude/test-support/test-folder';

const FILE = `${ROOT}examples/eval/families.jsonl`;
const folder = testFolder(afterAll);
/** Two families of the example. */
const two = join(folder, 'two.jsonl');
const kept = readFileSync(FILE, 'utf8')
  .split('\n')
  .filter((line) => /"family": "(quillmont-till|span-seconds)"/.test(line));
writeFileSync(two, kept.join('\n'));

describe('eval families', () => {
  let student: RunningStudent;
  const home = stackForTests(null, {
    env: async () => {
      student = await startStudent(two);
      // By default, memory is withheld at random, so one run in twenty would not see the rule.
      return { OPENAI_BASE_URL: student.url, ETUDE_RECALL_WITHHOLD_PROBABILITY: '0' };
    },
  });
  afterAll(() => student.close());

  it('learns the rule of a house from its reference, and draws what that saved', async () => {
    const run = ['eval', 'families', two, '--rounds', '2', '--home', home, '--json'];
    const summary = messagesIn<Figures>(await succeeds(etude(run))).at(-1)!;
    const of = (round: number, arm: string, kind: string) =>
      summary.rows.find((row) => row.round === round && row.arm === arm && row.kind === kind);
    expect(of(1, 'with', 'house_rule')).toMatchObject({ tasks: 1, firstRight: 0, solved: 0 });
    expect(of(2, 'with', 'house_rule')).toMatchObject({ firstRight: 1, solved: 1 });
    expect(of(2, 'without', 'house_rule')).toMatchObject({ firstRight: 0, solved: 0 });
    expect(of(2, 'with', 'procedure')).toMatchObject({ solved: 1, bySkill: 1 });
    expect(of(2, 'without', 'procedure')).toMatchObject({ solved: 1, bySkill: 0, modelCalls: 3 });
    expect(summary).toMatchObject({ scripted: true });
    // The figures count every call.
    const all = summary.rows.filter(({ kind }) => kind === 'all');
    expect(all.reduce((sum, row) => sum + row.modelCalls, 0)).toBe(student.calls().length);
    expect(all.reduce((sum, row) => sum + row.tokens, 0)).toBe(
      student.calls().reduce((sum, call) => sum + call.inputTokens + call.outputTokens, 0),
    );

    const [id = ''] = summary.runs;
    const asked = student.calls().length;
    expect(messagesIn(await succeeds(etude([...run, '--resume', id]))).at(-1)).toEqual(summary);
    expect(student.calls()).toHaveLength(asked);

    const page = join(folder, 'report.html');
    const report = await succeeds(etude(['eval', 'report', id, '--html', page, '--home', home, '--json']));
    expect(JSON.parse(report.stdout)).toEqual({ runs: summary.runs, scripted: true, rows: summary.rows });
    expect(readFileSync(page, 'utf8')).toContain('Tokens per task');
  });
});
