import { expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { auditConfig, AuditLog } from './audit-log.js';

const startQueue = queueForFile();
const CHANGE = { actor: 'ann', roles: ['reviewer'], call: 'Skills/ApproveSkill', target: 'skills/add', outcome: 'OK' };
const REFUSED = { ...CHANGE, target: '', outcome: 'PERMISSION_DENIED' };

function start() {
  const time = { at: Date.now() };
  const { producer } = startQueue();
  const log = new AuditLog(producer, auditConfig.parse({}), () => time.at);
  const listed = async () =>
    (await log.list('acme', { pageSize: 2_000 })).items.map(({ actor, call, outcome, count }) => [actor, call, outcome, count]);
  return { log, time, listed };
}

it('keeps nothing of a call that changed nothing', async () => {
  const { log, listed } = start();
  await log.write('acme', null, await log.write('acme', { ...CHANGE, outcome: 'UNKNOWN' }));
  expect(await listed()).toEqual([]);
});

it('counts refusals of the same caller and call within a minute in one entry', async () => {
  const { log, time, listed } = start();
  for (let i = 0; i < 3; i += 1) await log.write('acme', REFUSED);
  await log.write('acme', { ...REFUSED, actor: 'bob' });
  time.at += 60_000;
  await log.write('acme', REFUSED);
  expect(await listed()).toEqual([
    ['ann', CHANGE.call, 'PERMISSION_DENIED', 1],
    ['bob', CHANGE.call, 'PERMISSION_DENIED', 1],
    ['ann', CHANGE.call, 'PERMISSION_DENIED', 3],
  ]);
});

it('bounds the refusals of a day, and keeps every change', async () => {
  const { log, listed } = start();
  await log.write('acme', CHANGE);
  await Promise.all(Array.from({ length: 1_010 }, (_, n) => log.write('acme', { ...REFUSED, actor: `robot-${n}` })));
  const entries = await listed();
  expect(entries).toHaveLength(1_002);
  expect(entries[0]).toEqual(['', 'further refusals of the day', 'PERMISSION_DENIED', 10]);
  expect(entries.at(-1)).toEqual(['ann', CHANGE.call, 'OK', 1]);
});
