import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Task, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { Spec, TasksClient } from './rollout-load.js';

/** What the scripted agent does in one step: a line of Python, or a call with its arguments. The last step names the answer's file. */
export type Action = readonly ['code' | 'read' | 'search' | 'end', string] | readonly ['write', string, string];

const STEPS = 20;
/** In a task with this word, the model waits SLOW_FIRST_MS in the first step and SLOW_MS in later steps, so that a kill finds it waiting. */
export const SLOW = 'unhurried';
export const SLOW_FIRST_MS = 2_500;
export const SLOW_MS = 100;

const CALLS = {
  read: ['(?<path>\\S+)', { name: 'fs_read', arguments: { path: '{{path}}' } }],
  search: ['(?<text>.+)', { name: 'fs_search', arguments: { text: '{{text}}' } }],
  write: ['(?<path>\\S+) (?<content>.+)', { name: 'fs_write', arguments: { path: '{{path}}', content: '{{content}}\n' } }],
  end: ['(?<path>\\S+)', { name: 'final_answer', arguments: { file: '{{path}}' } }],
} as const;

/** Writes the script of an agent that follows the plan in its prompt. @returns its path */
export function agentScript(): string {
  const rules = [true, false].flatMap((isSlow) => Array.from({ length: STEPS }, (_, i) => rulesOf(i + 1, isSlow)).flat());
  const folder = mkdtempSync(join(tmpdir(), 'etude-bench-agent-'));
  process.once('exit', () => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'agent.json'), JSON.stringify({ name: 'agent', rules }));
  return join(folder, 'agent.json');
}

function rulesOf(step: number, isSlow: boolean) {
  const when = (kind: string, rest: string) => ({
    match: `\nStep ${step} of`,
    match_all: [...(isSlow ? [SLOW] : []), { regex: `^${step} ${kind} ${rest}$`, flags: 'm' }],
    ...(isSlow ? { delay_ms: step === 1 ? SLOW_FIRST_MS : SLOW_MS } : {}),
  });
  const calls = Object.entries(CALLS).map(([kind, [rest, call]]) => ({ ...when(kind, rest), reply: 'I go on.', tool_calls: [call] }));
  return [{ ...when('code', '(?<code>.+)'), reply: 'I run this.\n\n```python\n{{code}}\n```' }, ...calls];
}

export const promptOf = (about: string, plan: readonly Action[]) =>
  [`bench agent: ${about}`, ...plan.map((action, i) => [i + 1, ...action].join(' '))].join('\n');

export function agentTask(about: string, plan: readonly Action[], files: Readonly<Record<string, string>> = {}): Spec {
  return {
    prompt: promptOf(about, plan),
    strategy: 'codeact',
    memory: { off: true, readOnly: true },
    files: Object.entries(files).map(([path, text]) => ({ path, content: new TextEncoder().encode(text) })),
  };
}

export interface Step {
  readonly step: string;
  /** When the step's event arrived, in ms. */
  readonly at: number;
  readonly inputTokens: number;
  readonly summary: string;
}

/** Submits a task and follows it to its end. @throws if the task or one of its actions failed */
export async function followSteps(tasks: TasksClient, spec: Spec): Promise<{ task: Task; steps: readonly Step[] }> {
  const { name } = await tasks.submitTask({ spec });
  const steps: Step[] = [];
  for await (const { event } of tasks.watchTask({ name })) {
    if (event.case === 'finished' && event.value.task) {
      const { task } = event.value;
      const hasFailed = task.state !== TaskState.SUCCEEDED || steps.some(({ summary }) => /^failed|failed$/.test(summary));
      if (hasFailed) throw new Error(`${name} failed: ${steps.map(({ summary }) => summary).join('; ')}`);
      return { task, steps };
    }
    if (event.case !== 'stepFinished') continue;
    const { step, summary, usage } = event.value;
    steps.push({ step, summary, at: performance.now(), inputTokens: Number(usage?.inputTokens ?? 0) });
  }
  throw new Error(`the watch of ${name} ended early`);
}
