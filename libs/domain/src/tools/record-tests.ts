import type { Json } from '@etude/contracts/json';
import type { SkillTest } from '@etude/contracts/memory';
import { type RunResult, SandboxLimits } from '@etude/contracts/sandbox';
import { sameValue } from '../evaluation/compare.js';
import { refuseUnfinished } from '../evaluation/judge.js';
import type { Sandboxes } from '../ports/sandboxes.js';
import { contentDigest } from '../skills/content-digest.js';
import type { BundledCode, ToolReader } from './tool-ports.js';

interface ExampleCall {
  readonly args: Json[];
  readonly kwargs: Record<string, Json>;
}

interface Recording {
  readonly code: BundledCode;
  readonly entryPoint: string;
  readonly examples: readonly ExampleCall[];
}

const LIMITS = SandboxLimits.parse({});
const SEEDS = [undefined, 4_242_424_242] as const;

/**
 * Makes regression tests from calls without expected values. Each call runs twice, under two hash seeds; the common answer becomes the
 * expected one. Such tests show that the code keeps its behaviour, not that it is right.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY
 */
export async function recordTests(
  { code: { code, template }, entryPoint, examples: calls }: Recording,
  { tenant, agent, user }: ToolReader,
  sandboxes: Sandboxes,
  signal: AbortSignal,
): Promise<{ readonly tests: readonly SkillTest[] } | { readonly problem: string }> {
  const id = contentDigest([tenant, agent, user, code, entryPoint, calls]).slice(0, 40);
  const rounds: RunResult[][] = [];
  for (const [at, hashSeed] of SEEDS.entries()) {
    const request = {
      executionId: `record-${id}-${at}`,
      tenant,
      owner: { agent, user },
      files: [],
      limits: LIMITS,
      stopOnFailure: false,
      ...(template === undefined ? {} : { template }),
      runs: calls.map((call) => ({ kind: 'call' as const, code, entryPoint, ...call })),
    };
    const { runs } = await sandboxes.execute(hashSeed === undefined ? request : { ...request, hashSeed }, signal);
    refuseUnfinished(calls.length, runs);
    rounds.push(runs);
  }
  const problem = calls.map((call, at) => problemOf(call, rounds[0]?.[at], rounds[1]?.[at])).find((one) => one !== '');
  if (problem !== undefined) return { problem };
  return { tests: calls.map((call, at) => ({ kind: 'call', ...call, expected: rounds[0]?.[at]?.value ?? null, tolerance: 0 })) };
}

function problemOf(call: ExampleCall, first: RunResult | undefined, second: RunResult | undefined): string {
  const what = `The example ${JSON.stringify({ args: call.args, kwargs: call.kwargs }).slice(0, 300)}`;
  if (first?.exit !== 'ok' || second?.exit !== 'ok') {
    const { error, exit = 'nothing' } = (first?.exit === 'ok' ? second : first) ?? {};
    return `${what} failed: ${error === undefined ? `it ended with ${exit}` : `${error.type}: ${error.message}`}`;
  }
  if (!sameValue(second.value, first.value, 0)) return `${what} answers differently each time, so no test can be made of it`;
  if (JSON.stringify(first.value ?? null).includes('"$repr"'))
    return `${what} answers something that is no JSON value; give tests of your own, or return plain values`;
  return '';
}
