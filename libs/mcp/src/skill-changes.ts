import { setInterval } from 'node:timers/promises';
import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { McpCaller } from './caller.js';
import type { GatewayCalls } from './gateway-calls.js';

/** What follows these, by name, is not looked at: a client goes by the time that its listing is good for. */
const SKILLS_MAX = 1_000;
const TIMEOUT_MS = 30_000;

/** For a connection that lasts: how often it is looked whether skills have changed, and until when. */
export interface ChangeWatch {
  readonly everyMs: number;
  readonly signal: AbortSignal;
}

/**
 * Looks every so often whether a caller's active skills are other ones than before, and tells when they are.
 *
 * @returns what begins the looking, once: nobody has to hear of a change to what was never listed
 */
export function watchSkills(
  skills: Pick<GatewayCalls['skills'], 'listSkills'>,
  { agent, user, metadata }: McpCaller,
  { everyMs, signal, tell }: ChangeWatch & { readonly tell: () => Promise<void> },
): () => void {
  let seen: string | null = null;
  const look = async () => {
    const request = { agent, user, status: SkillStatus.ACTIVE, brief: true, pageSize: SKILLS_MAX };
    const { skills: active } = await skills.listSkills(request, { metadata, signal, timeoutMs: TIMEOUT_MS });
    const before = seen;
    seen = JSON.stringify(active.map(({ name, agent: owner, user: whose, version }) => [name, owner, whose, version]));
    if (before !== null && before !== seen) await tell();
  };
  // A gateway that is away changes nothing that could be told; the next look compares with the last that succeeded.
  const tried = () => look().catch(() => undefined);
  const keepLooking = async () => {
    await tried();
    for await (const _ of setInterval(everyMs, null, { signal, ref: false })) await tried();
  };
  let isBegun = false;
  return () => {
    if (isBegun) return;
    isBegun = true;
    keepLooking().catch(() => undefined); // ended by its signal
  };
}
