import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { freePort } from '@etude/test-support/ports';
import { startProcess } from '@etude/test-support/processes';
import { startStudent, type StudentCall } from '@etude/test-support/student';
import { summaryLine } from './figures.js';
import { callsByKind, type FamiliesRow, learningFigures } from './learning-figures.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MAIN = join(ROOT, 'apps/cli/dist/main.js');
const FAMILIES = join(ROOT, 'examples/eval/families.jsonl');
const QUICK_ROUNDS = 2;
const ROUNDS = 5;
/** The first round that counts. Earlier rounds are for learning. */
const FROM_ROUND = 3;

const say = (text: string) => process.stderr.write(`${text}\n`);

/**
 * `etude bench learning [--json] [--quick] [--svg FILE]`: runs rounds of problem families with and without memory, answered by the scripted
 * student. Reports what memory saves from round three on, including all calls for learning.
 */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { json: { type: 'boolean' }, quick: { type: 'boolean' }, svg: { type: 'string' } },
  });
  const rounds = values.quick ? QUICK_ROUNDS : ROUNDS;
  const home = mkdtempSync(join(tmpdir(), 'etude-learning-'));
  // A SIGTERM without a handler would skip the exit handler that ends the stack.
  process.once('SIGTERM', () => process.exit(143));
  const student = await startStudent(FAMILIES);
  const env = { ...environment(), OPENAI_BASE_URL: student.url, ETUDE_GRPC_PORT: String(await freePort()) };
  const up = await startProcess({ args: [MAIN, 'up', '--home', home], env, ready: 'Ctrl-C stops it' });
  try {
    const from = Math.min(FROM_ROUND, rounds);
    const { rows, callsBefore } = await runFamilies(home, env, { rounds, from, calls: () => student.calls().length });
    const figures = learningFigures(rows, from);
    if (!values.json) process.stdout.write(`${reportText(figures, from, student.calls().slice(callsBefore))}\n`);
    if (values.svg) await draw(home, env, values.svg);
    process.stdout.write(`${summaryLine('learning', figures)}\n`);
    return 0;
  } finally {
    await up.stop();
    await student.close();
    rmSync(home, { recursive: true });
  }
}

function environment(): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

interface Runs {
  readonly rounds: number;
  readonly from: number;
  readonly calls: () => number;
}

/** Runs the command, and counts the calls that the student had answered before the round `from`. */
async function runFamilies(home: string, env: Record<string, string>, { rounds, from, calls }: Runs) {
  const args = ['eval', 'families', FAMILIES, '--rounds', String(rounds), '--home', home, '--json'];
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  let [callsBefore, rows]: [number, readonly FamiliesRow[]] = [0, []];
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as { kind: string; round: number; rows: readonly FamiliesRow[] };
    if (line.kind === 'consolidation') say(`round ${line.round} of ${rounds} is over`);
    if (line.kind === 'consolidation' && line.round < from) callsBefore = calls();
    if (line.kind === 'summary') rows = line.rows;
  }
  await ended;
  if (child.exitCode !== 0) throw new Error(`etude eval families ended with ${child.exitCode}`);
  return { rows, callsBefore };
}

async function draw(home: string, env: Record<string, string>, path: string): Promise<void> {
  const [file = ''] = readdirSync(join(home, 'eval'));
  const child = spawn(process.execPath, [MAIN, 'eval', 'report', join(home, 'eval', file), '--svg', path, '--home', home], { env });
  await once(child, 'close');
  if (child.exitCode !== 0) throw new Error(`etude eval report ended with ${child.exitCode}`);
}

const AIMS: Readonly<Record<string, readonly [text: string, isMet: (value: number) => boolean]>> = {
  tokens_with_vs_without_ratio: ['at most 0.6', (value) => value <= 0.6],
  calls_with_vs_without_ratio: ['at most 0.5', (value) => value <= 0.5],
  house_rule_first_right_percent: ['at least 95', (value) => value >= 95],
  distractor_first_right_lost_percent: ['0', (value) => value <= 0],
  procedure_by_skill_percent: ['at least 50', (value) => value >= 50],
};

function reportText(figures: Record<string, number>, from: number, calls: readonly StudentCall[]): string {
  const lines = Object.entries(figures).map(([name, value]) => {
    const [aim, isMet] = AIMS[name] ?? ['', () => true];
    return `${name.padEnd(38)} ${String(value).padEnd(8)} ${aim && `aim: ${aim}${isMet(value) ? '' : ', missed'}`}`.trimEnd();
  });
  const kinds = callsByKind(calls);
  const total = kinds.reduce((sum, { tokens }) => sum + tokens, 0);
  const costs = kinds.map(
    ({ kind, calls: count, tokens }) => `  ${kind.padEnd(24)} ${count} calls, ${tokens} tokens, ${Math.round((100 * tokens) / total)} %`,
  );
  return [
    `From round ${from} on; the answers came from a scripted student, not from a model [scripted].`,
    ...lines,
    'What the calls of both arms and of consolidation cost, the dearest kind first:',
    ...costs,
  ].join('\n');
}
