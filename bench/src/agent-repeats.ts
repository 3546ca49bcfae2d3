import type { Redis } from 'ioredis';
import { RedisKeys } from '@etude/queue/redis/keys';
import { readJournal } from '@etude/queue/tasks/journal';
import { type Action, agentTask, followSteps } from './agent-script.js';
import { spread } from './figures.js';
import type { TasksClient } from './rollout-load.js';

const FILES = 300;
const UNPACK = `import json, os

for path, text in json.load(open("tree.json")).items():
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write(text)
os.remove("tree.json")
os.remove("unpack.py")
`;
const pathOf = (n: number) => `src/part${String(n % 20).padStart(2, '0')}/file${String(n).padStart(3, '0')}.py`;
const textOf = (n: number) => `# tag-${n % 75}\nLIMIT_${n} = ${n * 7_919}\n\n\ndef part_${n}(value):\n    return value + LIMIT_${n}\n`;
const TREE: ReadonlyMap<string, string> = new Map(Array.from({ length: FILES }, (_, n) => [pathOf(n), textOf(n)]));

/** A plan that repeats some reads and searches once or twice. `needed`: number of calls that a perfect cache makes. */
function planOf(i: number): { readonly plan: readonly Action[]; readonly needed: number } {
  const [a, b, tag] = [pathOf((i * 37) % FILES), pathOf((i * 53 + 11) % FILES), `tag-${(i * 37) % 75}`];
  const [readA, readB, search] = [['read', a] as const, ['read', b] as const, ['search', tag] as const];
  const changes: ReadonlyArray<readonly [number, readonly Action[]]> = [
    [3, [search, readA, readB, readA, search, readB, readA]],
    [6, [search, readA, ['write', a, `# ${tag} ${i}`], readA, readA, readB, readB, search]],
    [4, [readA, ['code', `open("${a}", "a").write("# added-${i}\\n");`], readA, search, search, readB, readA, readB]],
    [4, [search, readA, readA, ['search', `LIMIT_${i}`], search, readA, readB]],
  ];
  const [needed, actions] = changes[i % changes.length]!;
  return { plan: [['code', 'exec(open("unpack.py").read())'], ...actions, ['end', a]], needed };
}

/** A journaled call of `fs_read` or `fs_search`. */
interface Call {
  readonly outcome: { readonly result?: { content?: string; matches?: ReadonlyArray<{ path: string; line: number; text: string }> } };
}

/** Counts of calls over 300 files: all calls, executed calls, calls that a perfect cache would execute, and wrong answers. */
export async function repeatFigures(redis: Redis, tasks: TasksClient, n: number) {
  let [all, made, least, wrong] = [0, 0, 0, 0];
  const files = { 'tree.json': JSON.stringify(Object.fromEntries(TREE)), 'unpack.py': UNPACK };
  await spread(n, 4, async (i) => {
    const { plan, needed } = planOf(i);
    const { task, steps } = await followSteps(tasks, agentTask(`repeats ${i}`, plan, files));
    const journal = await readJournal(redis, new RedisKeys('etude'), `${task.name.slice('tasks/'.length)}-r1`);
    const answers = new Map(journal.map(({ key, value }) => [key, value as Call]));
    const calls = steps.filter(({ step }) => /\.t\d+$/.test(step));
    const expected = expectedOf(plan);
    all += calls.length;
    made += calls.filter(({ summary }) => !summary.endsWith(' again')).length;
    least += needed;
    wrong += expected.answers.filter(({ step, answer }) => answerOf(answers.get(`a1.s${step}.t1`)!) !== answer).length;
    if (task.result?.output !== expected.end) wrong += 1;
  });
  return { calls_all: all, calls_made_ratio: made / all, calls_needed_ratio: least / all, answers_wrong: wrong };
}

/** The right answers of the plan's calls, computed without a sandbox. `end`: content of the last step's file. */
function expectedOf(plan: readonly Action[]) {
  const tree = new Map(TREE);
  const answers: Array<{ readonly step: number; readonly answer: string }> = [];
  for (const [i, [kind, what, more = '']] of plan.entries()) {
    const [, path = '', added = ''] = (kind === 'code' && /open\("(.+?)", "a"\)\.write\("(.+)\\n"\)/.exec(what)) || [];
    if (path !== '') tree.set(path, `${tree.get(path)}${added}\n`);
    if (kind === 'write') tree.set(what, `${more}\n`);
    if (kind === 'read') answers.push({ step: i + 1, answer: tree.get(what)!.trimEnd() });
    if (kind === 'search') answers.push({ step: i + 1, answer: linesWith(tree, what) });
  }
  return { answers, end: tree.get(plan.at(-1)![1]) };
}

const linesWith = (tree: ReadonlyMap<string, string>, text: string) =>
  [...tree]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, content]) => content.split('\n').flatMap((line, at) => (line.includes(text) ? [`${path}:${at + 1}:${line}`] : [])))
    .join('\n');

function answerOf({ outcome: { result = {} } }: Call): string | undefined {
  return result.content ?? result.matches?.map(({ path, line, text }) => `${path}:${line}:${text}`).join('\n');
}
