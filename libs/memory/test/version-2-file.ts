import { DatabaseSync } from 'node:sqlite';
import { load } from 'sqlite-vec';

/** Makes a file of the present layout, closed by everybody, into what the second layout had: vectors that are searched themselves. */
export function backToVersion2(path: string): void {
  const db = new DatabaseSync(path, { allowExtension: true });
  load(db);
  db.exec(`BEGIN; CREATE TABLE place (n INTEGER PRIMARY KEY);
    WITH RECURSIVE up (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM up WHERE n < 1023) INSERT INTO place SELECT n FROM up`);
  for (const { id, dimension } of db.prepare('SELECT id, dimension FROM model').all()) {
    db.exec(`CREATE VIRTUAL TABLE record_vector_${String(id)} USING vec0 (
        id INTEGER PRIMARY KEY, tenant INTEGER PARTITION KEY, layer INTEGER PARTITION KEY,
        embedding float[${String(dimension)}] distance_metric=L2,
        agent INTEGER, user INTEGER, kind INTEGER, worth FLOAT, created_at INTEGER, chunk_size=128
      );
      INSERT INTO record_vector_${String(id)} (id, tenant, layer, embedding, agent, user, kind, worth, created_at)
        SELECT id, code.tenant, layer, embedding, agent, user, kind, worth, created_at
        FROM vector_code_${String(id)} AS code JOIN vector_${String(id)} USING (id);
      DROP TABLE vector_code_${String(id)}; DROP TABLE vector_${String(id)}`);
  }
  db.exec('PRAGMA user_version = 2; COMMIT');
  db.close();
}
