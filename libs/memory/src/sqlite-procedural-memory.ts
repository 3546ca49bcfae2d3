import type { MemoryWrite, Skill, SkillStatus } from '@etude/contracts/memory';
import type { ProceduralMemory, ReadScope, SearchQuery } from '@etude/domain/ports/memory';
import { skillEntries, skillEntry } from '@etude/domain/retrieval/entries';
import { afterUse, SKILL_CUES_MAX } from '@etude/domain/retrieval/reinforce';
import { wholeTenant } from '@etude/domain/retrieval/scopes';
import { notFound, withStatus } from '@etude/domain/retrieval/skill-status';
import type { SkillKey, StatusChange } from '@etude/domain/retrieval/skill-status';
import type { MemoryFile } from './memory-file.js';
import type { SearchIndex } from './search-index.js';
import type { SkillRow } from './skill-rows.js';
import { insertSkill, selectSkills, updateSkill } from './skill-rows.js';
import type { Commit } from './sqlite-episodic-memory.js';
import type { TenantRows } from './tenant-rows.js';

type SkillUse = Extract<MemoryWrite, { kind: 'skill_use' }>;

const LAYER = 'procedural';
/** Name, description and cues. */
const ROWS_PER_RECORD = SKILL_CUES_MAX + 2;

/** Skills in SQLite, found by name, description and cues while they are active. */
export class SqliteProceduralMemory implements ProceduralMemory {
  readonly #file: MemoryFile;
  readonly #index: SearchIndex;

  constructor(file: MemoryFile, index: SearchIndex) {
    this.#file = file;
    this.#index = index;
  }

  async store(skill: Skill): Promise<Skill> {
    return this.#file.write(wholeTenant(skill.scope), await this.prepareSkill(skill));
  }

  async prepareSkill(skill: Skill): Promise<Commit<Skill>> {
    const whole = wholeTenant(skill.scope);
    const known = await this.#file.read(whole, (rows) => sameDigest(rows, skill));
    const embedded = known === undefined ? await this.#index.embed(skillEntries(skill)) : [];
    return (rows) => {
      const owner = rows.ownerOf(skill.scope);
      const same = sameDigest(rows, skill);
      if (same !== undefined) return same.skill;
      const newest = ofAgent(rows, skill, '1', {}, 'ORDER BY version DESC LIMIT 1')[0]?.skill.version ?? 0;
      const stored = { ...skill, version: newest + 1 };
      const entries = embedded.map((item) => ({ ...item, entry: skillEntry(stored, item.entry.indexed) }));
      this.#index.insert(rows, LAYER, owner, insertSkill(rows, owner, stored), entries, stored.status === 'active');
      return stored;
    };
  }

  async get(scope: ReadScope, name: string, version?: number): Promise<Skill | null> {
    const found = await this.#file.read(scope, (rows) =>
      selectSkills(
        rows,
        'name = :name AND (:version IS NULL OR version = :version)',
        { name, version: version ?? null },
        'ORDER BY version DESC, agent LIMIT 1',
      ),
    );
    return found[0]?.skill ?? null;
  }

  async list(
    scope: ReadScope,
    options: { status?: SkillStatus; limit: number; afterName?: string; afterAgent?: string },
  ): Promise<readonly Skill[]> {
    const { status = null, limit, afterName = null, afterAgent = null } = options;
    return this.#file.read(scope, (rows) => {
      const agent = '(SELECT principal.name FROM principal WHERE principal.id = agent)';
      const newest = `version = (SELECT max(version) FROM skill_record AS other WHERE other.tenant = :tenant${rows.within}
        AND other.agent = skill_record.agent AND other.name = skill_record.name AND (:status IS NULL OR other.status = :status))`;
      const after = `(:afterName IS NULL OR name > :afterName OR (name = :afterName AND ${agent} > :afterAgent))`;
      const where = `(:status IS NULL OR status = :status) AND ${after} AND ${newest}`;
      const values = { status, afterName, afterAgent, limit: Math.max(0, limit) };
      return selectSkills(rows, where, values, `ORDER BY name, ${agent} LIMIT :limit`).map(({ skill }) => skill);
    });
  }

  async setStatus(
    scope: ReadScope,
    key: SkillKey,
    from: readonly SkillStatus[],
    to: SkillStatus,
    reason: string,
    evidence: readonly string[],
    at: number,
  ): Promise<Skill> {
    const change: StatusChange = { to, reason, evidence, at };
    return this.#file.write(scope, (rows) => {
      const found = selectSkills(rows, 'name = :name AND version = :version', { name: key.name, version: key.version }, 'ORDER BY agent');
      const meant = found.find(({ skill }) => skill.digest === key.digest) ?? found[0];
      if (meant === undefined) throw notFound(key);
      const changed = withStatus(meant.skill, key, from, change);
      this.#update(rows, meant.row, changed);
      return changed;
    });
  }

  async search(scope: ReadScope, query: SearchQuery): ReturnType<ProceduralMemory['search']> {
    const target = { file: this.#file, layer: LAYER, rowsPerRecord: ROWS_PER_RECORD } as const;
    return this.#index.search(target, scope, query, (rows, found) =>
      found.flatMap(({ record, similarity, score, explanation }) =>
        selectSkills(rows, "row = :record AND status = 'active'", { record }, '').map(({ skill }) => ({
          skill,
          similarity,
          score,
          ...(query.explain ? { explanation } : {}),
        })),
      ),
    );
  }

  async byFingerprint(scope: ReadScope, fingerprint: string): Promise<readonly Skill[]> {
    const solved =
      "status = 'active' AND row IN (SELECT skill FROM skill_fingerprint WHERE tenant = :tenant AND fingerprint = :fingerprint)";
    const found = await this.#file.read(scope, (rows) => selectSkills(rows, solved, { fingerprint }, 'ORDER BY row DESC'));
    return found.map(({ skill }) => skill).toSorted((a, b) => b.successRate - a.successRate);
  }

  async recordUse(useId: string, use: SkillUse): Promise<void> {
    await this.#file.write(wholeTenant(use.scope), await this.prepareUse(useId, use));
  }

  async prepareUse(useId: string, use: SkillUse): Promise<Commit> {
    const before = await this.#file.read(wholeTenant(use.scope), (rows) => (rows.wasApplied('use', useId) ? null : used(rows, use)));
    if (before === null) return () => undefined;
    const isNew = afterUse(before.skill, use).cues.length > before.skill.cues.length;
    const embedded = isNew ? await this.#index.embed([skillEntry(before.skill, use.cue)]) : [];
    return (rows) => {
      if (!rows.markApplied('use', useId)) return;
      const { row, skill } = used(rows, use);
      const changed = afterUse(skill, use);
      if (changed.cues.length > skill.cues.length) {
        this.#index.insert(rows, LAYER, rows.ownerOf(changed.scope), row, embedded, changed.status === 'active');
      }
      this.#update(rows, row, changed);
    };
  }

  #update(rows: TenantRows, row: number, skill: Skill): void {
    updateSkill(rows, row, skill);
    const shown = skill.status === 'active';
    this.#index.update(rows, LAYER, row, { shown, worth: skill.successRate, createdAt: skill.updatedAt, sources: skill.sources });
  }
}

/** Versions are counted per agent, whoever the user was. */
function ofAgent(
  rows: TenantRows,
  skill: Pick<Skill, 'scope' | 'name'>,
  where: string,
  values: Readonly<Record<string, string | number>>,
  order: string,
): SkillRow[] {
  const agent = "agent = (SELECT id FROM principal WHERE principal.tenant = :tenant AND kind = 'agent' AND principal.name = :agentName)";
  return selectSkills(
    rows,
    `${agent} AND skill_record.name = :skillName AND ${where}`,
    { ...values, agentName: skill.scope.agent, skillName: skill.name },
    order,
  );
}

function sameDigest(rows: TenantRows, skill: Skill): SkillRow | undefined {
  return ofAgent(rows, skill, 'digest = :digest', { digest: skill.digest }, '')[0];
}

function used(rows: TenantRows, use: SkillUse): SkillRow {
  const found = ofAgent(rows, use, 'version = :version', { version: use.version }, '')[0];
  if (found === undefined) throw notFound(use);
  return found;
}
