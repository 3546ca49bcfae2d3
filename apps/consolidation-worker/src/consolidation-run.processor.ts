import { ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import type { ConsolidationRunJob } from '@etude/contracts/queues';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { consolidate, type ConsolidationDeps } from '@etude/domain/consolidation/consolidate';
import type { RunBudget } from '@etude/domain/consolidation/consolidate-agent';
import type { Clock } from '@etude/domain/ports/clock';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { settledStatus } from '@etude/domain/skills/proof/admit-skill';
import type { JobContext, JobHandler } from '@etude/queue/jobs/consumer';
import type { ConsolidationStore } from '@etude/queue/memory/consolidation-store';
import type { OutboxReader } from '@etude/queue/memory/memory-outbox';
import { setTimeout as sleep } from 'node:timers/promises';

interface ConsolidationRunDeps extends Omit<ConsolidationDeps, 'report' | 'mayStore'> {
  readonly pendingWrites: Pick<OutboxReader, 'pending'>;
  readonly runs: ConsolidationStore;
  readonly clock: Clock;
  readonly writesWaitMs: number;
  readonly budget: RunBudget;
}

/** Runs one consolidation and keeps its record: queued, running, then done. The reconciler notes a failure. */
export function consolidationRunProcessor(
  deps: ConsolidationRunDeps,
): JobHandler<typeof ConsolidationRunJob.payload, typeof ConsolidationRunJob.result> {
  return async ({ tenant, runId, agent, days, dryRun }, context) => {
    const { runs, clock } = deps;
    // The record of a nightly run is made here, because no caller made it.
    const asked = { id: runId, tenant, agent, days, dryRun, state: 'queued', createdAt: clock.now() };
    const record = (await runs.get(tenant, runId)) ?? ConsolidationRecord.parse(asked);
    if (record.state === 'done') return { runId };
    const begun: ConsolidationRecord = { ...record, state: 'running', error: null, endedAt: null };
    await runs.put(begun);
    await runs.put({ ...begun, ...(await runOnce(begun, deps, context)), state: 'done', endedAt: clock.now() });
    return { runId };
  };
}

async function runOnce(record: ConsolidationRecord, deps: ConsolidationRunDeps, { signal }: JobContext) {
  const { tenant, agent, days, dryRun, force, createdAt, id } = record;
  const plan = await waitForWrites(tenant, deps, signal);
  const report = deps.runs.report({ ...record, plan });
  const input = { run: id, tenant, agent, days, dryRun, force, now: createdAt, budget: deps.budget };
  return { plan, ...(await consolidate(input, { ...deps, report, mayStore }, signal)) };
}

/** Whether a learned text has no secret. The model may have read a secret in an episode from before secrets were masked. */
async function mayStore(text: string): Promise<boolean> {
  const { findSecrets } = await import('@etude/analysis/find-secrets');
  return findSecrets(text).length === 0;
}

/** Waits at most `writesWaitMs` until the writes accepted before the run are applied. @returns a note about the missing writes */
async function waitForWrites(tenant: string, deps: ConsolidationRunDeps, signal: AbortSignal): Promise<string[]> {
  const { pendingWrites, writesWaitMs } = deps;
  if (await waitUntil(async () => (await pendingWrites.pending(tenant)) === 0, writesWaitMs, signal)) return [];
  return [
    `${await pendingWrites.pending(tenant)} memory writes were not applied within ${writesWaitMs} ms; the run leaves them out (see the dead letters of memory.write)`,
  ];
}

/** Reads the status of proposed skills from memory, where `skill.verify` writes it. Waits at most `waitMs` for all of them together. */
export function storedStatuses(procedural: ProceduralMemory, waitMs: number): ConsolidationDeps['settledStatuses'] {
  return async (skills, signal) => {
    let statuses: SkillStatus[] = [];
    const look = async () => {
      const found = await Promise.all(skills.map((skill) => settledStatus(procedural, skill)));
      statuses = found.filter((status) => status !== null);
      return statuses.length === skills.length;
    };
    await waitUntil(look, waitMs, signal);
    return statuses;
  };
}

const POLL_MS = 200;

async function waitUntil(condition: () => Promise<boolean>, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) return false;
    await sleep(POLL_MS, undefined, { signal });
  }
  return true;
}
