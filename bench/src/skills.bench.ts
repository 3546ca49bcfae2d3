import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { startBareFork } from './bare-fork.js';
import { percentile, repeat, round, summaryLine } from './figures.js';
import { fillSkills, purpose } from './many-skills.js';

type Client = ServiceClient<typeof Skills>;

interface Side {
  readonly stack: TestStack;
  readonly skills: Client;
}

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

/** Uses a skill in turns with a bare fork of a warm interpreter that calls the same function. */
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

/** Registers a new skill in each stack by turns, while no worker verifies skills. */
async function registerMs(few: Client, many: Client, n: number) {
  const fewMs: number[] = [];
  const manyMs: number[] = [];
  for (let i = 0; i < WARM_UP + n; i++) {
    const register = (skills: Client) => repeat(1, async () => void (await skills.registerSkill({ skill: draft(`new_${i}`) })));
    const [inFew, inMany] = [await register(few), await register(many)];
    if (i < WARM_UP) continue;
    fewMs.push(...inFew);
    manyMs.push(...inMany);
  }
  return { few: percentile(fewMs, 50), many: percentile(manyMs, 50) };
}

async function searchMs(skills: Client, n: number): Promise<number[]> {
  const search = (i: number) => skills.searchSkills({ query: `Please ${purpose((i * 37) % MANY)}`, agent: AGENT, minSimilarity: 0.1 });
  await repeat(WARM_UP, search);
  return repeat(n, async (i) => {
    const { hits } = await search(WARM_UP + i);
    if (hits.length === 0) throw new Error('a search found nothing');
  });
}

/** @param few a stack with few skills @param among a stack that gets many skills */
async function measure(few: Side, among: Side, n: number): Promise<Record<string, number>> {
  say('verifying small skills, all stages ...');
  const verifyMs = await repeat(Math.max(3, Math.round(n / 10)), (i) => verified(few.skills, i === 0 ? NAME : `${NAME}_${i}`));
  say('using one ...');
  const use = await useOverhead(few.skills, n);
  for (const { stack } of [few, among]) await stack.consolidator.stop();
  say(`writing ${MANY} skills ...`);
  await fillSkills(among.stack.memoryPath, AGENT, MANY);
  say('registering among few and among many ...');
  const register = await registerMs(few.skills, among.skills, n);
  say('searching among them ...');
  const search = await searchMs(among.skills, n);
  return {
    use_overhead_p50_ms: round(use.useMs - use.bareMs),
    use_p50_ms: round(use.useMs),
    use_p95_ms: round(use.useP95Ms),
    bare_fork_p50_ms: round(use.bareMs),
    search_p50_ms: round(percentile(search, 50)),
    search_p95_ms: round(percentile(search, 95)),
    register_p50_ms: round(register.few),
    register_p50_ms_at_10k: round(register.many),
    register_ratio_at_10k: round(register.many / register.few),
    verify_p50_s: round(percentile(verifyMs, 50) / 1_000, 3),
  };
}

async function startSide(): Promise<Side> {
  const stack = await startStack({ script: fileURLToPath(new URL('../src/instant.yaml', import.meta.url)) });
  return { stack, skills: createServiceClient(Skills, stack.address) };
}

async function stopSide({ stack, skills }: Side): Promise<void> {
  skills.close();
  await stack.stop();
}

/**
 * The cost of skills through a gateway, with real services, Redis, sandboxes and a memory file: `[--quick]`. Verification is timed from
 * registering to active. The embedder is lexical, so that no figure includes a model's time.
 */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: { quick: { type: 'boolean', default: false }, json: { type: 'boolean' } } });
  const few = await startSide();
  try {
    const among = await startSide();
    try {
      const figures = await measure(few, among, values.quick ? 40 : 200);
      process.stdout.write(`${summaryLine('skills', figures)}\n`);
      return 0;
    } finally {
      await stopSide(among);
    }
  } finally {
    await stopSide(few);
  }
}
