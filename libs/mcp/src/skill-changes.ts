import { createHash } from 'node:crypto';
import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { McpCaller } from './caller.js';
import type { GatewayCalls } from './gateway-calls.js';

/** What follows these, by name, is not looked at: a client goes by the time that its listing is good for. */
const SKILLS_MAX = 1_000;
const TIMEOUT_MS = 30_000;

export interface SkillChangesOptions {
  /** Between two looks while the client asks for things. */
  readonly everyMs: number;
  /** A client that asks for nothing is looked for ever more seldom, up to this. */
  readonly idleEveryMs: number;
  /** Ends the looking. */
  readonly signal: AbortSignal;
  readonly tell: () => Promise<void>;
}

/**
 * Looks every so often whether a caller's active skills are other ones than before, and tells when they are. Each look that follows without
 * a word of the client waits twice as long, so that one that is open all night costs next to nothing.
 */
export class SkillChanges {
  #isBegun = false;
  #waitMs: number;
  #lookedAt = 0;
  /** Undefined while a look is under way. */
  #timer: NodeJS.Timeout | undefined;
  /** Null until a look has succeeded. */
  #seen: string | null = null;

  constructor(
    private readonly skills: Pick<GatewayCalls['skills'], 'listSkills'>,
    private readonly caller: McpCaller,
    private readonly options: SkillChangesOptions,
  ) {
    this.#waitMs = options.everyMs;
  }

  /** From the first time on: nobody has to hear of a change to what was never listed. */
  begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    void this.#look();
  }

  /** The client has asked for something: what has changed by now, it hears soon. */
  heard(): void {
    this.#waitMs = this.options.everyMs;
    if (this.#timer !== undefined) this.#lookIn(this.#lookedAt + this.#waitMs - performance.now());
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), Math.max(0, ms)).unref();
  }

  async #look(): Promise<void> {
    const { signal, idleEveryMs, tell } = this.options;
    this.#timer = undefined;
    if (signal.aborted) return;
    this.#lookedAt = performance.now();
    try {
      const now = await this.#fingerprint();
      const isOther = this.#seen !== null && this.#seen !== now;
      this.#seen = now;
      if (isOther) await tell();
    } catch {
      // A gateway that is away changes nothing that could be told; the next look compares with the last that succeeded.
    }
    if (signal.aborted) return;
    this.#lookIn(this.#waitMs);
    this.#waitMs = Math.min(2 * this.#waitMs, idleEveryMs);
  }

  async #fingerprint(): Promise<string> {
    const { agent, user, metadata } = this.caller;
    const hash = createHash('sha256');
    const request = { agent, user, status: SkillStatus.ACTIVE, brief: true, pageSize: SKILLS_MAX };
    const { skills } = await this.skills.listSkills(request, { metadata, signal: this.options.signal, timeoutMs: TIMEOUT_MS });
    for (const { name, agent: owner, user: whose, version } of skills) hash.update(JSON.stringify([name, owner, whose, version]));
    return hash.digest('hex');
  }
}
