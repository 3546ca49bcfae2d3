import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { Clock } from '../src/ports/clock.js';
import type { CountedUse, ProceduralMemory, ReadScope, SearchQuery } from '../src/ports/memory.js';
import type { SkillKey, SkillMove, SkillOwner, StoreSkillOptions } from '../src/ports/memory.js';
import { requireScope, wholeTenant } from '../src/ports/memory.js';
import type { ProofChecker } from '../src/ports/verification.js';
import { skillEntries } from '../src/retrieval/entries.js';
import { afterOffers, afterUse, ownersOfUse } from '../src/skills/life/usage.js';
import { mayCall, type MovedVersion, requireCallable } from '../src/skills/life/call-graph.js';
import { IN_USE, keyOf, movedSkill, noSuchSkill, requireOnlyActive } from '../src/skills/life/skill-life.js';
import { codeDigest } from '../src/skills/content-digest.js';
import { knownVersion, markedCode, nextVersion } from '../src/skills/life/carried-over.js';
import { needsRoom, requireRoom } from '../src/skills/life/register-skill.js';
import { fakeSearch, isWithin } from './fake-search.js';

/** A memory of skills in a list, for domain tests. It passes the conformance suite. Callers must not change the returned records. */
export class FakeProceduralMemory implements ProceduralMemory {
  #skills: Skill[] = [];
  readonly #uses = new Set<string>();
  readonly #clock: Clock;
  readonly #checker: ProofChecker | null;

  /** If `checker` is null, every signature counts as valid. */
  constructor(clock: Clock = { now: () => 0 }, checker: ProofChecker | null = null) {
    this.#clock = clock;
    this.#checker = checker;
  }

  /** Adds skills with any status and history, for tests that start in the middle of a skill's life. */
  keep(...skills: readonly Skill[]): this {
    this.#skills = [...this.#skills, ...skills];
    return this;
  }

  /** All skills as "name@version status". */
  statuses(): string[] {
    return this.#skills.map(({ name, version, status }) => `${name}@${version} ${status}`);
  }

  async store(given: Skill, options: StoreSkillOptions = {}): Promise<Skill> {
    const { words, namesMax = 0, setAside } = options;
    const { scope, name } = given;
    requireScope(wholeTenant(scope));
    const versions = this.#versions(scope, name);
    const known = knownVersion(given, versions, words);
    if (known !== null) return known.changed === null ? known.version : this.#replace(this.#find(keyOf(known.version)), known.changed);
    const stored = nextVersion(given, versions, this.#isMarked(given), options);
    if (setAside === undefined && needsRoom(versions) && namesMax > 0) requireRoom(scope, this.#names(scope), namesMax);
    this.#skills = [...this.#skills, stored];
    return stored;
  }

  async get(scope: ReadScope, name: string, version?: number): Promise<Skill | null> {
    const found = this.#visible(scope).filter((skill) => skill.name === name && (version === undefined || skill.version === version));
    // The reader's own skill comes first, then a skill without a user, then other users' skills.
    const place: Order = ({ scope: { user } }) => (user === null ? 1 : user === scope.user ? 0 : 2);
    return sorted(found, place, byUser, newestFirst)[0] ?? null;
  }

  async versions(owner: SkillOwner, name: string, status?: SkillStatus): Promise<readonly Skill[]> {
    return this.#versions(owner, name).filter((skill) => status === undefined || skill.status === status);
  }

  async *every(scope: ReadScope, statuses?: readonly SkillStatus[], fromName = ''): AsyncGenerator<Skill> {
    requireScope(scope);
    const wanted = ({ status, name }: Skill) => (statuses === undefined || statuses.includes(status)) && name >= fromName;
    yield* sorted(this.#visible(scope).filter(wanted), byName, byAgent, byUser, ({ version }) => version);
  }

  async countNames(owner: SkillOwner): Promise<number> {
    return this.#names(owner);
  }

  async move(moves: readonly SkillMove[]): Promise<readonly Skill[]> {
    if (new Set(moves.map(({ key }) => key?.tenant)).size > 1)
      throw new EtudeError('INVALID_ARGUMENT', 'skills of several tenants were to be moved at once; move those of each by themselves');
    for (;;) {
      const before = this.#skills;
      const behind = new FakeProceduralMemory(this.#clock, this.#checker).keep(...before);
      const moved = moves.map((move) => behind.#movedBy(move));
      for (const { before: known, after } of moved)
        if (known.status !== 'active' && after.status === 'active') requireOnlyActive(after, behind.#versions(after.scope, after.name));
      await requireCallable(this, moved);
      // Another call changed the list meanwhile.
      if (this.#skills !== before) continue;
      this.#skills = behind.#skills;
      return moved.map(({ after: { scope, name, version } }) => this.#find({ ...scope, name, version }));
    }
  }

  async dependents(
    owner: Pick<SkillKey, 'tenant' | 'agent' | 'user' | 'name'>,
    { all = false }: { readonly all?: boolean } = {},
  ): Promise<readonly Skill[]> {
    const { tenant, agent } = owner;
    requireScope({ tenant, agent });
    return this.#skills
      .filter(({ scope, status }) => (tenant === GLOBAL_TENANT || scope.tenant === tenant) && (all || IN_USE.has(status)))
      .filter((skill) => mayCall(skill, owner));
  }

  async countOffers(offers: Parameters<ProceduralMemory['countOffers']>[0]): Promise<void> {
    for (const { tenant, agent } of offers) requireScope({ tenant, agent });
    const byVersion = Map.groupBy(offers, (offer) => this.#known(offer));
    this.#skills = this.#skills.map((skill) => afterOffers(skill, byVersion.get(skill) ?? []));
  }

  async search(scope: ReadScope, query: SearchQuery): ReturnType<ProceduralMemory['search']> {
    const items = this.#active(scope).flatMap((record) => skillEntries(record).map((entry) => ({ record, entry })));
    const hits = await fakeSearch(items, query, this.#clock.now());
    return hits.map(({ record: skill, entry: _entry, ...scored }) => ({ skill, ...scored }));
  }

  async byFingerprint(scope: ReadScope, fingerprint: string): Promise<readonly Skill[]> {
    return this.#active(scope)
      .filter((skill) => skill.fingerprints.includes(fingerprint))
      .toReversed()
      .toSorted((a, b) => b.successRate - a.successRate);
  }

  async applyUse(useId: string, use: CountedUse): Promise<boolean> {
    requireScope(wholeTenant(use.scope));
    const key = JSON.stringify([use.scope.tenant, useId]);
    if (this.#uses.has(key)) return false;
    const [used] = ownersOfUse(use).flatMap((owner) => this.#known({ ...owner, name: use.name, version: use.version }) ?? []);
    if (used === undefined) throw noSuchSkill(use);
    this.#uses.add(key);
    this.#replace(used, afterUse(used, use));
    return true;
  }

  #movedBy(move: SkillMove): MovedVersion {
    const before = this.#find(move.key);
    const after = movedSkill(before, move, this.#checker);
    this.#replace(before, after);
    return { before, after, move };
  }

  #names(owner: SkillOwner): number {
    const kept = this.#owned(owner).filter((skill) => !needsRoom([skill]));
    return new Set(kept.map(({ name }) => name)).size;
  }

  #isMarked(given: Skill): boolean {
    const code = codeDigest(given);
    return code !== null && this.#visible({ tenant: given.scope.tenant, agent: null }).some((skill) => markedCode(skill) === code);
  }

  #versions(owner: SkillOwner, name: string): readonly Skill[] {
    return sorted(
      this.#owned(owner).filter((skill) => skill.name === name),
      newestFirst,
      byUser,
    );
  }

  #find(key: Omit<SkillKey, 'digest'>): Skill {
    const found = this.#known(key);
    if (found === undefined) throw noSuchSkill(key);
    return found;
  }

  /** The version of the key's user. If the key has no user, a skill without a user is preferred. */
  #known({ name, version, ...owner }: Omit<SkillKey, 'digest'>): Skill | undefined {
    const found = this.#owned(owner).filter((skill) => skill.name === name && skill.version === version);
    return found.find(({ scope }) => scope.user === null) ?? found[0];
  }

  #owned({ tenant, agent, user }: SkillOwner): Skill[] {
    return this.#visible({ tenant, agent }).filter(({ scope }) => user === undefined || scope.user === user);
  }

  #replace(old: Skill, changed: Skill): Skill {
    this.#skills = this.#skills.map((skill) => (skill === old ? changed : skill));
    return changed;
  }

  #visible(scope: ReadScope): Skill[] {
    requireScope(scope);
    return this.#skills.filter((skill) => isWithin(skill.scope, scope));
  }

  #active(scope: ReadScope): Skill[] {
    return this.#visible(scope).filter(({ status }) => status === 'active');
  }
}

type Order = (skill: Skill) => number | string;

const byName: Order = ({ name }) => name;
const byAgent: Order = ({ scope }) => scope.agent;
const byUser: Order = ({ scope }) => scope.user ?? '';
const newestFirst: Order = ({ version }) => -version;

function sorted(skills: readonly Skill[], ...orders: readonly Order[]): Skill[] {
  const differing = (a: Skill, b: Skill) => orders.find((order) => order(a) !== order(b));
  return skills.toSorted((a, b) => {
    const order = differing(a, b);
    return order === undefined ? 0 : order(a) < order(b) ? -1 : 1;
  });
}
