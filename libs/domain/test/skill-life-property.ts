import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { SKILL_STATUSES, type SkillProof, type SkillStatus } from '@etude/contracts/skill-proof';
import * as fc from 'fast-check';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { recordVerification, settleVerified } from '../src/skills/life/decisions.js';
import { registerSkill } from '../src/skills/life/register-skill.js';
import { proofText, skillDigest } from '../src/skills/content-digest.js';
import { dependencyOn } from '../src/skills/proof/bundle-code.js';
import { NOTHING_FOUND, signProof } from '../src/skills/proof/proof.js';
import { IN_USE, isSameOwner, keyOf, TRANSITIONS } from '../src/skills/life/skill-life.js';
import { neededSkills, refusalOf } from '../src/skills/life/call-graph.js';
import { TEST_SIGNER } from './bundle-fixture.js';
import { NEW_YEAR, skillOf } from './memory-records.js';
import { decideOn, proofOf } from './skill-lives.js';

/** When a process crashes: before or after its n-th change to the registry. */
export interface Death {
  readonly change: number;
  readonly when: 'before' | 'behind';
}

class Killed extends Error {}

const OWNERS = [
  { tenant: 'acme', agent: 'coder', user: null },
  { tenant: 'acme', agent: 'coder', user: 'ann' },
  { tenant: 'beta', agent: 'coder', user: null },
] as const;
/** Each skill calls the active skill whose name is the one before its own in this list. */
const NAMES = ['one', 'two', 'three'] as const;
const LETTERS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const;
const FINDINGS = { ...NOTHING_FOUND, testsPassed: 3, mutantsMade: 4, mutantsNoticed: 4 };
const ERROR_FINDING = { analyser: 'ruff', rule: 'S102', severity: 'error', line: 1, message: 'exec is used' } as const;
/** Error codes of refusals. Any other error is a fault of the registry. */
const REFUSALS = new Set(['ABORTED', 'FAILED_PRECONDITION', 'NOT_FOUND', 'INVALID_ARGUMENT']);

/** Values with their weights. */
function often<T extends string>(weights: Readonly<Record<T, number>>): fc.Arbitrary<T> {
  const options = Object.entries<number>(weights).map(([value, weight]) => ({ arbitrary: fc.constant(value as T), weight }));
  return fc.oneof(...options);
}

const CALL = fc.record({
  what: often({
    store: 4,
    register: 2,
    admit: 6,
    verify: 3,
    settle: 3,
    approve: 4,
    reject: 1,
    deprecate: 1,
    archive: 2,
    restore: 2,
    rollback: 3,
    promote: 1,
    move: 4,
  }),
  owner: fc.constantFrom(0, 0, 0, 0, 1, 2),
  name: fc.constantFrom('one', 'one', 'one', 'two', 'two', 'three'),
  letter: fc.constantFrom(...LETTERS),
  /** Index of the version among the existing versions, newest first. */
  place: fc.nat(2),
  version: fc.integer({ min: 1, max: 4 }),
  to: fc.constantFrom(...SKILL_STATUSES),
  proof: fc.constantFrom('none', 'taken away', 'of its own digest', 'signed for another', 'signed, then changed', 'of its own words'),
  mode: often({ automatic: 3, review: 1, threshold: 1 }),
  untrusted: often({ yes: 1, no: 3 }).map((answer) => answer === 'yes'),
  passes: often({ yes: 4, no: 1 }).map((answer) => answer === 'yes'),
  finds: often({ yes: 1, no: 4 }).map((answer) => answer === 'yes'),
  /** Whether the call uses versions that were read before its turn. */
  stale: fc.boolean(),
  wrongDigest: often({ yes: 1, no: 4 }).map((answer) => answer === 'yes'),
  twice: fc.boolean(),
  death: fc.option(fc.record({ change: fc.integer({ min: 1, max: 3 }), when: fc.constantFrom('before', 'behind') }), {
    nil: null,
    freq: 4,
  }),
});
type Call = typeof CALL extends fc.Arbitrary<infer T> ? T : never;

/** Calls of one turn are made at the same time. */
export const TURNS = fc.array(fc.array(CALL, { minLength: 1, maxLength: 4 }), { minLength: 10, maxLength: 60 });

/**
 * Makes calls in any order, at the same time in all registries, with repeats and crashes. Requires that each verified, reviewed or active skill has a
 * proof that verification signed for exactly its content, and that only moves in `TRANSITIONS` led to its status.
 *
 * @param registries registries that share one store
 * @param writesWhole if true, also requires that at most one version of a skill is active, and that each skill in use or in review can run
 * @returns how many skills were active after a turn, over all turns, and how many of the skills in use call another skill
 */
export async function liveThrough(
  registries: readonly [ProceduralMemory, ...ProceduralMemory[]],
  turns: ReadonlyArray<readonly Call[]>,
  writesWhole: boolean,
): Promise<{ readonly active: number; readonly callers: number }> {
  const town = new Town(registries);
  for (const turn of turns) {
    await town.take(turn);
    if (writesWhole) await town.requireWhole();
  }
  return town;
}

class Town {
  active = 0;
  callers = 0;
  #at = NEW_YEAR;
  readonly #issued = new Set<string>();
  readonly #registry: ProceduralMemory;
  readonly #registries: readonly ProceduralMemory[];

  constructor(registries: readonly [ProceduralMemory, ...ProceduralMemory[]]) {
    [this.#registry] = registries;
    this.#registries = registries;
  }

  async take(turn: readonly Call[]): Promise<void> {
    const before = await this.#everything();
    const made = turn.flatMap((call) => (call.twice ? [call, call] : [call]));
    const outcomes = await Promise.allSettled(
      made.map((call, i) => this.#make(call, before, this.#registries[i % this.#registries.length]!)),
    );
    for (const outcome of outcomes) if (outcome.status === 'rejected') requireRefusal(outcome.reason);
    for (const skill of await this.#everything()) this.#requireLawful(skill);
  }

  /** Requires that at most one version of each skill is active, and that callers can run. */
  async requireWhole(): Promise<void> {
    const inUse = (await this.#everything()).filter(({ status }) => IN_USE.has(status));
    const active = inUse.filter(({ status }) => status === 'active').map(({ name, scope }) => JSON.stringify([name, scope]));
    if (new Set(active).size < active.length) throw new Error('several versions of one skill are active');
    for (const skill of inUse.filter(({ dependencies = [] }) => dependencies.length > 0)) {
      this.callers += 1;
      const refusal = await neededSkills(this.#registry, skill).then(() => '', refusalOf);
      if (refusal !== '') throw lawless(skill, `can't run: ${refusal}`);
    }
  }

  async #make(call: Call, before: readonly Skill[], living: ProceduralMemory): Promise<unknown> {
    const registry = call.death === null ? living : mortal(living, call.death);
    const scope = OWNERS[call.owner] ?? OWNERS[0];
    const given = this.#claim(call, before);
    this.#at += 1;
    const decision = { by: 'ann', reason: '', at: this.#at };
    if (call.what === 'store') return registry.store(given);
    if (call.what === 'register') {
      const settings = { enabled: true, maxSkills: 0 };
      const base = call.stale ? { baseVersion: call.version } : {};
      return registerSkill(given, { ...base, by: 'ann' }, { procedural: registry, settings });
    }
    const versions = call.stale ? before : await this.#registry.versions(scope, call.name);
    const known = versions.filter(({ name, scope: of }) => name === call.name && isSameOwner(of, scope));
    const skill = known[call.place % Math.max(1, known.length)];
    return skill === undefined ? null : this.#decide(call, skill, registry, decision);
  }

  #decide(call: Call, skill: Skill, registry: ProceduralMemory, decision: { by: string; reason: string; at: number }): Promise<unknown> {
    const digest = call.wrongDigest ? 'f'.repeat(64) : skill.digest;
    const settings = { approvalMode: call.mode, skillRegistrationConfidenceThreshold: call.finds ? 0.9 : 0.5 };
    switch (call.what) {
      case 'admit':
        return this.#verify(call, skill, registry).then((verified) => settleVerified(registry, verified, settings, decision.at));
      case 'verify':
        return this.#verify(call, skill, registry);
      case 'settle':
        return settleVerified(registry, skill, settings, decision.at);
      case 'move':
        // Such a forged move would remove the proof. Then it could archive a skill that others call.
        if (call.to === 'archived' || call.to === 'candidate') return Promise.resolve();
        return registry.move([{ key: { ...keyOf(skill), digest }, to: call.to, ...decision, ...this.#forged(call, skill) }]);
      default: {
        const { version: toVersion, what, passes } = call;
        const named = passes ? { replacedBy: 'two', toVersion } : {};
        return decideOn(registry, skill, { ...decision, ...named, what, digest });
      }
    }
  }

  /** Verifies the content of a skill, whatever its record claims. */
  async #verify(call: Call, skill: Skill, registry: ProceduralMemory): Promise<Skill> {
    const findings = call.finds ? [ERROR_FINDING] : [];
    const kept = (await registry.versions(skill.scope, skill.name, 'active')).map(dependencyOn);
    const proof = signProof(skill, { ...FINDINGS, findings, kept }, TEST_SIGNER, this.#at);
    if (call.passes) this.#issued.add(proofText(proof));
    const found = { passed: call.passes, reason: call.passes ? '' : 'its tests fail', evidence: ['the code parses'] };
    return recordVerification(registry, skill, call.passes ? { ...found, proof } : found, this.#at);
  }

  /** The false claims of an author without a signing key. */
  #forged(call: Call, skill: Skill): { proof?: SkillProof | null } {
    const other = skillOf({ name: 'other', code: 'print("harmless")' });
    const signed = signProof(other, FINDINGS, TEST_SIGNER, this.#at);
    switch (call.proof) {
      case 'taken away':
        return { proof: null };
      case 'of its own digest':
        return { proof: proofOf(skill, { keyId: TEST_SIGNER.keyId, signature: 'forged' }) };
      case 'signed for another':
        return { proof: signed };
      case 'signed, then changed':
        return { proof: { ...signed, digest: skill.digest } };
      case 'of its own words':
        return { proof: proofOf(skill) };
      default:
        return {};
    }
  }

  /** A skill with false claims about its own life. */
  #claim(call: Call, before: readonly Skill[]): Skill {
    const scope = OWNERS[call.owner] ?? OWNERS[0];
    const called = NAMES[NAMES.indexOf(call.name) - 1];
    const dependencies = before
      .filter(({ name, status, scope: of }) => name === called && status === 'active' && isSameOwner(of, scope))
      .map(dependencyOn);
    const content = { code: `print('${call.letter}')`, ...(dependencies.length === 0 ? {} : { dependencies }) };
    const skill = skillOf({ name: call.name, scope, ...content, status: call.to });
    const { proof } = this.#forged(call, skill);
    const history = [{ at: 1, by: 'me', from: null, to: call.to, reason: 'trust me' }];
    return {
      ...skill,
      history,
      evidence: ['all of it'],
      ...(proof ? { proof } : {}),
      ...(call.untrusted ? { untrusted: ['it was learned from a page'] } : {}),
      ...(call.wrongDigest ? { digest: 'f'.repeat(64) } : {}),
    };
  }

  async #everything(): Promise<readonly Skill[]> {
    const owners = [...OWNERS, { tenant: 'acme', agent: '@tenant' }, { tenant: 'beta', agent: '@tenant' }];
    const each = [...new Map(owners.map(({ tenant, agent }) => [`${tenant} ${agent}`, { tenant, agent }])).values()];
    const found = await Promise.all(each.flatMap((owner) => NAMES.map((name) => this.#registry.versions(owner, name))));
    return found.flat();
  }

  #requireLawful(skill: Skill): void {
    const { status, proof, history = [] } = skill;
    const steps = history.map(({ from, to }) => [from, to] as const);
    const isChain = steps.every(([from, to], i) =>
      i === 0 ? from === null && to === 'candidate' : from === steps[i - 1]?.[1] && from !== null && TRANSITIONS[from].includes(to),
    );
    if (!isChain || steps.at(-1)?.[1] !== status)
      throw lawless(skill, 'reached its status by a move that the table of transitions forbids');
    if (skill.digest !== skillDigest(skill)) throw lawless(skill, 'does not have the digest of its content');
    if (status !== 'verified' && status !== 'pending_review' && status !== 'active') return;
    this.active += status === 'active' ? 1 : 0;
    const isSigned = proof !== undefined && proof.digest === skillDigest(skill) && this.#issued.has(proofText(proof));
    if (!isSigned) throw lawless(skill, 'has no proof that verification signed for its content');
    const wasMarked = skill.untrusted !== undefined && status === 'active';
    if (wasMarked && !wasReviewed(steps)) throw lawless(skill, 'is marked, and nobody reviewed it');
  }
}

function lawless(skill: Skill, why: string): Error {
  return new Error(`${skill.status} skill ${skill.name}@${skill.version} of ${skill.scope.agent} ${why}: ${JSON.stringify(skill.history)}`);
}

/** Whether somebody approved the skill in a review. A marked skill needs this before it is used for the first time. */
function wasReviewed(steps: ReadonlyArray<readonly [SkillStatus | null, SkillStatus]>): boolean {
  return steps.some(([from, to]) => from === 'pending_review' && to === 'active');
}

function requireRefusal(error: unknown): void {
  if (error instanceof Killed || REFUSALS.has(errorCode(error))) return;
  throw error;
}

/** A registry that throws once, at its n-th change. */
function mortal(registry: ProceduralMemory, { change, when }: Death): ProceduralMemory {
  let left = change;
  const dying = async <T>(work: () => Promise<T>): Promise<T> => {
    left -= 1;
    if (left !== 0) return work();
    if (when === 'behind') await work();
    throw new Killed();
  };
  return new Proxy(registry, {
    get(target, name) {
      if (name === 'store') return (...given: Parameters<ProceduralMemory['store']>) => dying(() => target.store(...given));
      if (name === 'move') return (...given: Parameters<ProceduralMemory['move']>) => dying(() => target.move(...given));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
