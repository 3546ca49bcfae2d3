import type { Skill } from '@etude/contracts/memory';
import type { Owner, TenantRows } from './tenant-rows.js';

/** A stored skill with the row it is in. */
export interface SkillRow {
  readonly row: number;
  readonly skill: Skill;
}

interface Raw {
  readonly row: number;
  readonly json: string;
}

/** `where` and `order` are our own SQL; values are bound. */
export function selectSkills(
  rows: TenantRows,
  where: string,
  values: Readonly<Record<string, string | number | null>>,
  order: string,
): SkillRow[] {
  const found = rows.all<Raw>(`SELECT row, json FROM skill_record WHERE tenant = :tenant${rows.within} AND ${where} ${order}`, values);
  return found.map((raw) => ({ row: raw.row, skill: assemble(rows, raw) }));
}

export function insertSkill(rows: TenantRows, owner: Owner, skill: Skill): number {
  const { name, version, digest, status } = skill;
  const { row } = rows.run(
    `INSERT INTO skill_record (tenant, agent, user, name, version, digest, status, json)
     VALUES (:tenant, :agent, :user, :name, :version, :digest, :status, :json)`,
    { ...owner, name, version, digest, status, json: jsonOf(skill) },
  );
  insertFingerprints(rows, row, skill.fingerprints);
  return row;
}

export function updateSkill(rows: TenantRows, row: number, skill: Skill): void {
  rows.run('UPDATE skill_record SET status = :status, json = :json WHERE tenant = :tenant AND row = :row', {
    row,
    status: skill.status,
    json: jsonOf(skill),
  });
  insertFingerprints(rows, row, skill.fingerprints);
}

/** Fingerprints are rows of their own: a skill that is used for years has many, and they are looked up. */
function jsonOf(skill: Skill): string {
  return JSON.stringify({ ...skill, fingerprints: [] });
}

function assemble(rows: TenantRows, { row, json }: Raw): Skill {
  const prints = rows.all<{ fingerprint: string }>(
    'SELECT fingerprint FROM skill_fingerprint WHERE tenant = :tenant AND skill = :row ORDER BY row',
    { row },
  );
  return { ...(JSON.parse(json) as Skill), fingerprints: prints.map(({ fingerprint }) => fingerprint) };
}

function insertFingerprints(rows: TenantRows, row: number, fingerprints: readonly string[]): void {
  for (const fingerprint of fingerprints) {
    rows.run('INSERT OR IGNORE INTO skill_fingerprint (tenant, fingerprint, skill) VALUES (:tenant, :fingerprint, :row)', {
      row,
      fingerprint,
    });
  }
}
