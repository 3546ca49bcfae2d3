import { setTimeout as sleep } from 'node:timers/promises';
import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { McpCaller } from './caller.js';
import type { GatewayCalls } from './gateway-calls.js';

/** Number of skills, by name, that are watched for changes. For others, clients rely on the cache lifetime of their listing. */
const SKILLS_MAX = 1_000;
const TIMEOUT_MS = 30_000;

/** How often a long-lived connection checks for changed skills, in ms, and the signal that ends it. */
export interface ChangeWatch {
  readonly everyMs: number;
  readonly signal: AbortSignal;
  /** Called for a check that failed. The next one compares with the last successful one. */
  readonly onError: (error: Error) => void;
}

/**
 * Checks periodically whether the caller's active skills have changed, and notifies the client if so.
 *
 * @returns starts the checks, once. Called at the first listing: clients needn't hear of changes before it
 */
export function watchSkills(
  skills: Pick<GatewayCalls['skills'], 'listSkills'>,
  { agent, user, metadata }: McpCaller,
  { everyMs, signal, onError, tell }: ChangeWatch & { readonly tell: () => Promise<void> },
): () => void {
  let seen: string | null = null;
  const look = async () => {
    const request = { agent, user, status: SkillStatus.ACTIVE, brief: true, pageSize: SKILLS_MAX };
    const { skills: active } = await skills.listSkills(request, { metadata, signal, timeoutMs: TIMEOUT_MS });
    const before = seen;
    seen = JSON.stringify(active.map(({ name, agent: owner, user: whose, version }) => [name, owner, whose, version]));
    if (before !== null && before !== seen) await tell();
  };
  const keepLooking = async () => {
    for (;;) {
      await look().catch((error: Error) => signal.aborted || onError(error));
      await sleep(everyMs, undefined, { signal, ref: false });
    }
  };
  let isBegun = false;
  return () => {
    if (isBegun) return;
    isBegun = true;
    keepLooking().catch(() => undefined); // ended by its signal
  };
}
