import { createHash } from 'node:crypto';
import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { McpCaller } from './caller.js';
import type { GatewayCalls } from './gateway-calls.js';

const PAGE_SIZE = 200;
/** What follows these, by name, is not looked at: a client goes by the time that its listing is good for. */
const SKILLS_MAX = 1_000;
const TIMEOUT_MS = 30_000;

export interface SkillChangesOptions {
  readonly everyMs: number;
  /** Ends the looking. */
  readonly signal: AbortSignal;
  readonly tell: () => Promise<void>;
}

/** Looks every so often whether a caller's active skills are other ones than before, and tells when they are. */
export class SkillChanges {
  #isBegun = false;
  /** Null until a look has succeeded. */
  #seen: string | null = null;

  constructor(
    private readonly skills: Pick<GatewayCalls['skills'], 'listSkills'>,
    private readonly caller: McpCaller,
    private readonly options: SkillChangesOptions,
  ) {}

  /** From the first time on: nobody has to hear of a change to what was never listed. */
  begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    void this.#look();
  }

  async #look(): Promise<void> {
    const { signal, everyMs, tell } = this.options;
    if (signal.aborted) return;
    try {
      const now = await this.#fingerprint();
      const isOther = this.#seen !== null && this.#seen !== now;
      this.#seen = now;
      if (isOther) await tell();
    } catch {
      // A gateway that is away changes nothing that could be told; the next look compares with the last that succeeded.
    }
    if (!signal.aborted) setTimeout(() => void this.#look(), everyMs).unref();
  }

  async #fingerprint(): Promise<string> {
    const { agent, user, metadata } = this.caller;
    const hash = createHash('sha256');
    for (let pageToken = '', count = 0; count < SKILLS_MAX; count += PAGE_SIZE) {
      const request = { agent, user, status: SkillStatus.ACTIVE, pageSize: PAGE_SIZE, pageToken };
      const page = await this.skills.listSkills(request, { metadata, signal: this.options.signal, timeoutMs: TIMEOUT_MS });
      for (const { name, agent: owner, user: whose, version } of page.skills) hash.update(JSON.stringify([name, owner, whose, version]));
      pageToken = page.nextPageToken;
      if (pageToken === '') break;
    }
    return hash.digest('hex');
  }
}
