import { DatabaseSync } from 'node:sqlite';

/** What the file that `writeVersion1` makes holds, as `readVersion1` gives it. */
export function version1Records(count: number) {
  const of = (kind: 'transition' | 'episode' | 'fact') =>
    Array.from({ length: count }, (_, i) => ({ kind, tenant: i % 2 === 0 ? 'acme' : 'beta', json: JSON.stringify({ id: `${kind}${i}` }) }));
  const skill = { kind: 'skill' as const, tenant: 'acme', json: JSON.stringify({ name: 'sum', fingerprints: ['f1', 'f2'] }) };
  const applied = { kind: 'applied' as const, tenant: 'acme', what: 'write' as const, id: 'w1' };
  return [...of('transition'), ...of('episode'), ...of('fact'), skill, applied];
}

/** A file as the first layout had it, without what search needs; `json` as short as can be. */
export function writeVersion1(path: string, count: number): void {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL;
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE tenant (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE applied (tenant INTEGER, kind TEXT, id TEXT, PRIMARY KEY (tenant, kind, id)) WITHOUT ROWID;
    CREATE TABLE transition_record (row INTEGER PRIMARY KEY, tenant INTEGER, json TEXT);
    CREATE TABLE episode_record (row INTEGER PRIMARY KEY, tenant INTEGER, json TEXT);
    CREATE TABLE fact_record (row INTEGER PRIMARY KEY, tenant INTEGER, json TEXT);
    CREATE TABLE skill_record (row INTEGER PRIMARY KEY, tenant INTEGER, name TEXT, json TEXT);
    CREATE TABLE skill_fingerprint (row INTEGER PRIMARY KEY, tenant INTEGER, fingerprint TEXT, skill INTEGER);
    INSERT INTO tenant VALUES (1, 'acme'), (2, 'beta');
    INSERT INTO skill_record VALUES (1, 1, 'sum', '{"name":"sum","fingerprints":[]}');
    INSERT INTO skill_fingerprint VALUES (1, 1, 'f1', 1), (2, 1, 'f2', 1);
    INSERT INTO applied VALUES (1, 'write', 'w1');
    PRAGMA application_id = 1165260132; PRAGMA user_version = 1; BEGIN`);
  for (const record of version1Records(count)) {
    if (record.kind === 'skill' || record.kind === 'applied') continue;
    db.prepare(`INSERT INTO ${record.kind}_record (tenant, json) SELECT id, ? FROM tenant WHERE name = ?`).run(record.json, record.tenant);
  }
  db.exec('COMMIT');
  db.close();
}
