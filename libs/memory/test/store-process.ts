import type { Change, RecordStore } from '../src/record-store.js';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import { insert, recordOf, SAMPLE_MODEL, vectorOf } from './record-store-samples.js';

/**
 * A process that uses a SQLite store: `writer PATH NAME` writes, changes and removes until it is stopped. Prints a line for each step.
 */
const [role, path = '', name = ''] = process.argv.slice(2);
console.log('ready');
const store = await openSqliteStore({ path, model: SAMPLE_MODEL, lockWaitMs: 20_000 });
console.log('opened');
if (role === 'writer') await write(store);
await store.close();

async function write(on: RecordStore): Promise<void> {
  for (let i = 0; ; i += 1) {
    const key = `${name}-${i}`;
    await on.write(
      'acme',
      [0, 1, 2].map((part) => insertOf('acme', `${key}-${part}`, 'first')),
    );
    const changed = insertOf('acme', `${key}-0`, 'second');
    await on.write('acme', [
      { ...changed, do: 'replace', revision: 1 },
      { do: 'update', record: insertOf('acme', `${key}-1`, 'second').record, revision: 1 },
    ]);
    await on.remove({ tenant: 'acme' }, 'semantic', { where: { id: `${key}-2` } });
    console.log(key);
  }
}

function insertOf(tenant: string, key: string, body: string): Extract<Change, { do: 'insert' }> {
  const record = recordOf({ key, body, scope: { tenant, agent: 'coder', user: null }, fields: { id: key }, text: 'x'.repeat(5_000) });
  const texts = [1, 2].map((axis) => ({ text: `words of ${key} ${body}`, vector: vectorOf({ [axis]: 1 }) }));
  const change = insert(record, ...texts);
  if (change.do !== 'insert') throw new Error('not an insert');
  return change;
}
