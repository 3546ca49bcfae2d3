import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { startBareFork } from './bare-fork.js';
import { percentile, repeat, round, summaryLine } from './figures.js';
import { fillSkills, purpose } from './many-skills.js';

type Client = ServiceClient<typeof Skills>;

const WARM_UP = 20;
const AGENT = 'bench';
const MANY = 10_000;
const NAME = 'digit_sum';
const CODE = `def ${NAME}(number: int) -> int:\n    """Adds the digits of a number."""\n    return sum(int(digit) for digit in str(abs(number)))\n`;
const TESTS = [
  [12, 3],
  [0, 0],
  [-905, 14],
  [77, 14],
] as const;

const say = (text: string) => process.stderr.write(`${text}\n`);
const number = (value: number) => ({ kind: { case: 'numberValue' as const, value } });

/** A small skill; another one for each `i`. */
function draft(name: string) {
  const code = CODE.replaceAll(NAME, name);
  const tests = TESTS.map(([given, expected]) => ({
    test: { case: 'call' as const, value: { args: { values: [number(given)] }, expected: number(expected) } },
  }));
  return { name, agent: AGENT, code, tests, description: `Adds the digits of a number, as ${name} does.` };
}

async function verified(skills: Client, name: string): Promise<void> {
  const { status, statusReason } = await skills.registerSkill({ skill: draft(name), wait: true }, { timeoutMs: 60_000 });
  if (status !== SkillStatus.ACTIVE) throw new Error(`${name} is ${SkillStatus[status]}: ${statusReason}`);
}

/** By turns with a fork of a warm interpreter that calls the same function, with nothing around it. */
async function useOverhead(skills: Client, n: number) {
  const bare = startBareFork();
  const used: number[] = [];
  const bareMs: number[] = [];
  for (let i = 0; i < WARM_UP + n; i++) {
    const [useMs = Number.NaN] = await repeat(1, async () => {
      const { success, error } = await skills.useSkill({ name: `skills/${NAME}`, agent: AGENT, parameters: { number: i } });
      if (!success) throw new Error(error);
    });
    const [forkMs = Number.NaN] = await repeat(1, () => bare.run(`${CODE}\nprint(${NAME}(${i}))`));
    if (i < WARM_UP) continue;
    used.push(useMs);
    bareMs.push(forkMs);
  }
  await bare.close();
  return { useMs: percentile(used, 50), useP95Ms: percentile(used, 95), bareMs: percentile(bareMs, 50) };
}

/** While nobody verifies: its jobs wait. */
function registerMs(skills: Client, prefix: string, n: number): Promise<number[]> {
  return repeat(n, async (i) => void (await skills.registerSkill({ skill: draft(`${prefix}_${i}`) })));
}

async function measure(stack: TestStack, skills: Client, n: number): Promise<Record<string, number>> {
  say('verifying small skills, all stages ...');
  const verifyMs = await repeat(Math.max(3, Math.round(n / 10)), (i) => verified(skills, i === 0 ? NAME : `${NAME}_${i}`));
  say('using one ...');
  const use = await useOverhead(skills, n);
  await stack.consolidator.stop();
  say('registering among few ...');
  await registerMs(skills, 'warm', WARM_UP);
  const few = await registerMs(skills, 'few', Math.round(n / 4));
  say(`writing ${MANY} skills ...`);
  await fillSkills(stack.memoryPath, AGENT, MANY);
  say('registering among many ...');
  await registerMs(skills, 'warm_again', WARM_UP);
  const many = await registerMs(skills, 'many', Math.round(n / 4));
  say('searching among them ...');
  const search = (i: number) => skills.searchSkills({ query: `Please ${purpose((i * 37) % MANY)}`, agent: AGENT, minSimilarity: 0.1 });
  await repeat(WARM_UP, search);
  const searchMs = await repeat(n, async (i) => {
    const { hits } = await search(WARM_UP + i);
    if (hits.length === 0) throw new Error('a search found nothing');
  });
  const [fewMs, manyMs] = [percentile(few, 50), percentile(many, 50)];
  return {
    use_overhead_p50_ms: round(use.useMs - use.bareMs),
    use_p50_ms: round(use.useMs),
    use_p95_ms: round(use.useP95Ms),
    bare_fork_p50_ms: round(use.bareMs),
    search_p50_ms: round(percentile(searchMs, 50)),
    search_p95_ms: round(percentile(searchMs, 95)),
    register_p50_ms: round(fewMs),
    register_p50_ms_at_10k: round(manyMs),
    register_ratio_at_10k: round(manyMs / fewMs),
    verify_p50_s: round(percentile(verifyMs, 50) / 1_000, 3),
  };
}

/**
 * What skills cost through a gateway, with real services, Redis, sandboxes and a memory file: `[--quick]`. Verification is timed from
 * registering to active. The embedder is the lexical one, so that no figure holds a model's time.
 */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: { quick: { type: 'boolean', default: false }, json: { type: 'boolean' } } });
  const stack = await startStack({ script: fileURLToPath(new URL('../src/instant.yaml', import.meta.url)) });
  const skills = createServiceClient(Skills, stack.address);
  try {
    const figures = await measure(stack, skills, values.quick ? 40 : 200);
    process.stdout.write(`${summaryLine('skills', figures)}\n`);
    return 0;
  } finally {
    skills.close();
    await stack.stop();
  }
}
