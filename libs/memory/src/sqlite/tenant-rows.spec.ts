import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ownedBy } from '../record-store.js';
import { TenantRows } from './tenant-rows.js';

function prepared() {
  const db = new DatabaseSync(':memory:');
  onTestFinished(() => db.close());
  db.exec(`CREATE TABLE tenant (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE);
    CREATE TABLE principal (id INTEGER PRIMARY KEY, tenant INTEGER, kind TEXT, name TEXT, UNIQUE (tenant, kind, name));
    CREATE TABLE thing (tenant INTEGER, agent INTEGER, user INTEGER, n INTEGER)`);
  return (sql: string) => db.prepare(sql);
}

const writtenBy = (prepare: ConstructorParameters<typeof TenantRows>[0], tenant: string) =>
  new TenantRows(prepare, ownedBy({ tenant }), true);

describe('TenantRows', () => {
  it('refuses a statement without a condition on the tenant', () => {
    const rows = writtenBy(prepared(), 'acme');
    for (const sql of ['SELECT * FROM thing', 'DELETE FROM thing', 'SELECT :tenants', "SELECT 'tenant'"]) {
      for (const use of [() => rows.all(sql), () => rows.run(sql), () => rows.iterate(sql)]) {
        expect(use).toThrow(expect.objectContaining({ code: 'TENANT_MISSING' }));
      }
    }
  });

  it('binds its own tenant, not the value of the caller', () => {
    const prepare = prepared();
    const acme = writtenBy(prepare, 'acme');
    const beta = writtenBy(prepare, 'beta');
    acme.run('INSERT INTO thing VALUES (:tenant, 0, 0, 1)', { tenant: 2 });
    expect(beta.all('SELECT n FROM thing WHERE tenant = :tenant', { tenant: 1 })).toEqual([]);
    expect(acme.all('SELECT n FROM thing WHERE tenant = :tenant', { tenant: 2 })).toHaveLength(1);
  });
});
