import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { toJson } from '@bufbuild/protobuf';
import { type ConsolidationRun, ConsolidationRunSchema, ConsolidationState } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { type Cli, withGateway } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { isUnavailable } from '../grpc-errors.js';
import { plural } from '../output.js';
import { SCRIPTED } from '../tasks/task-lines.js';

const POLL_MS = 200;

export interface ConsolidateOptions {
  readonly dryRun?: boolean;
  readonly agent?: string;
  readonly days: number;
  readonly requestId?: string;
  readonly detach?: boolean;
}

const isOver = ({ state }: ConsolidationRun) => state === ConsolidationState.DONE || state === ConsolidationState.FAILED;

/** Polls until the run is over; a gateway that is away or busy is asked again until `signal` aborts. */
export async function waitForRun(
  gateway: Gateway,
  run: ConsolidationRun,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Promise<ConsolidationRun> {
  let current = run;
  while (!isOver(current)) {
    await sleep(POLL_MS, undefined, { signal });
    try {
      current = await gateway.consolidation.getConsolidationRun({ name: run.name }, { timeoutMs, signal });
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
  }
  return current;
}

export function runText(run: ConsolidationRun): string {
  const learned = [
    `${plural(run.factsAdded, 'new fact')}, ${run.factsReinforced} reinforced`,
    `${plural(run.skillsProposed, 'skill')} proposed, ${run.skillsActivated} active, ${run.skillsRejected} rejected`,
  ];
  const lines = [
    `${run.name} ${ConsolidationState[run.state].toLowerCase()}${run.dryRun ? ' (dry run: nothing was changed)' : ''}${run.scripted ? ` ${SCRIPTED}` : ''}`,
    `  read ${plural(run.episodesRead, 'episode')} in ${plural(run.groups, 'group')}: ${learned.join('; ')}`,
    `  ${plural(run.modelCalls, 'model call')}, ${plural(run.modelFailures, 'answer')} that could not be read`,
    ...run.plan.map((line) => `  - ${line}`),
  ];
  if (run.error) lines.push(`  failed: ${run.error}`);
  return lines.join('\n');
}

export function consolidate(
  cli: Cli,
  { dryRun = false, agent = '', days, requestId = randomUUID(), detach = false }: ConsolidateOptions,
): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const call = { timeoutMs: cli.callTimeoutMs, signal: cli.signal };
    const started = await gateway.consolidation.runConsolidation({ dryRun, agent, days, requestId }, call);
    if (!detach) cli.out.note(`${started.name} …`);
    const run = detach ? started : await waitForRun(gateway, started, call);
    cli.out.data(toJson(ConsolidationRunSchema, run), runText(run));
    return run.state === ConsolidationState.FAILED ? EXIT.failed : EXIT.ok;
  });
}
