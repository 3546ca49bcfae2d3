import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RolloutRun } from '@etude/contracts/queues';
import { RedisGroup } from '@etude/test-support/redis-group';
import { until } from '@etude/test-support/until';
import { expect, it, onTestFinished } from 'vitest';
import { SOLVED, SPEC, startProducer } from '../../test/rig.js';
import type { JobHandler } from '../jobs/consumer.js';
import { startReconciler } from '../reconciler.js';
import { openJournal } from '../tasks/journal.js';
import { connectRedis } from './redis.js';
import { watchCancel } from './channels.js';

function group() {
  const servers = new RedisGroup();
  onTestFinished(() => servers.stop());
  return servers;
}

/** A producer, a reconciler and a worker that solves tasks, each over its own connections. `runs` has every end of a rollout in a journal. */
async function start(url: string, prefix: string) {
  const rig = startProducer(url, prefix);
  const { producer, tasks } = rig;
  const reconciler = startReconciler({ producer, tasks, intervalMs: 200 });
  onTestFinished(() => reconciler.close());
  const own = connectRedis(url, 'worker');
  onTestFinished(() => own.disconnect());
  const run: JobHandler<typeof RolloutRun.payload, typeof RolloutRun.result> = async (address) => {
    const journal = await openJournal(own, rig.keys, address);
    if (!journal) return { outcome: 'fenced' };
    await journal.finish({ ...SOLVED, usage: journal.usage, learnFrom: [] });
    return { outcome: 'succeeded' };
  };
  const worker = rig.startConsumer(RolloutRun, run, { concurrency: 8 });
  await worker.ready();
  const ended = async (id: string) => (await tasks.get('acme', id).catch(() => null))?.state === 'succeeded';
  const endsOf = async (id: string) =>
    (await rig.redis.xrange(rig.keys.events('acme', id), '-', '+')).filter(([, fields]) => fields.join('').includes('"finished"')).length;
  return { ...rig, worker, ended, endsOf };
}

/** Submits a task like a client: repeats it under the same request id until it is accepted. */
async function accepted({ tasks }: Awaited<ReturnType<typeof start>>, requestId: string): Promise<string> {
  return until(
    () =>
      tasks.submit('acme', SPEC, requestId).then(
        ({ record }) => record.id,
        () => null,
      ),
    { what: 'a submit' },
  );
}

it('does not take a write for confirmed by the replicas of a server that never had it', async () => {
  const servers = group();
  const first = await servers.start();
  const replica = await servers.replicate(first.port);
  const url = `redis://127.0.0.1:${first.port}`;
  const { submit } = startProducer(url, 'etude');
  replica.process.child.kill('SIGSTOP');
  const { open } = await submit();
  const worker = connectRedis(`${url}?replicas=1`, 'worker');
  onTestFinished(() => worker.disconnect());
  const opened = open(worker).then(
    () => 'opened',
    (error: { readonly code: string }) => error.code,
  );
  await until(() => servers.cli(first.port, 'CLIENT', 'LIST').includes('cmd=wait'));
  await first.process.kill();
  await servers.start([], first.port);
  await servers.start(['--replicaof', '127.0.0.1', String(first.port)]);
  expect(await opened).toBe('QUEUE_UNAVAILABLE');
});

it('keeps every accepted task when sentinels replace a killed primary', async () => {
  const servers = group();
  const { primary, replica, url } = await servers.watched({ outageMs: 1_000 });
  const rig = await start(`${url}?replicas=1`, 'etude');
  const ids: string[] = [];
  const loaders = [0, 1, 2, 3].map(async (loader) => {
    for (let i = 0; i < 25; i++) ids.push(await accepted(rig, `l${loader}-${i}`));
  });
  await until(() => ids.length >= 30);
  const acceptedFirst = ids.length;
  await primary.process.kill();
  const killedAt = performance.now();
  // The new primary accepts nothing before it has a replica of its own.
  await servers.promoted(replica.port);
  await until(() => ids.length > acceptedFirst);
  const gapMs = performance.now() - killedAt;
  await Promise.all(loaders);
  expect(new Set(ids).size).toBe(100);
  for (const id of ids) await until(() => rig.ended(id), { what: `the end of ${id}` });
  for (const id of ids) expect(await rig.endsOf(id)).toBe(1);
  await rig.worker.check();
  console.info(`accepted again ${Math.round(gapMs)} ms after the kill`);
}, 120_000);

it('refuses to acknowledge what no replica has, and the repeat finds it', async () => {
  const servers = group();
  const alone = await servers.start();
  const { tasks } = startProducer(`redis://127.0.0.1:${alone.port}?replicas=1`, 'etude');
  await expect(tasks.submit('acme', SPEC, 'once')).rejects.toThrow(/0 of 1 replicas have confirmed the write/);
  await servers.replicate(alone.port);
  expect(await tasks.submit('acme', SPEC, 'once')).toMatchObject({ created: false });
}, 30_000);

it('runs on a cluster, and follows its slot to another node', async () => {
  const servers = group();
  const { nodes, primary: owner, url } = await servers.clustered();
  expect(() => startProducer(url, 'etude')).toThrow(/set ETUDE_QUEUE_PREFIX to "\{etude\}"/);
  const rig = await start(url, '{etude}');
  const first = await accepted(rig, '');
  await until(() => rig.ended(first));
  const woken = Promise.withResolvers<void>();
  await watchCancel(rig.redis, rig.keys.cancel('acme', first), () => Promise.resolve(false), woken.resolve).ready;
  await rig.redis.publish(rig.keys.cancel('acme', first), '');
  await woken.promise;

  const slot = servers.cli(owner.port, 'CLUSTER', 'KEYSLOT', '{etude}').trim();
  const idOf = (port: number) => servers.cli(port, 'CLUSTER', 'MYID').trim();
  const target = nodes.find((node) => node !== owner)!;
  servers.cli(target.port, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', idOf(owner.port));
  servers.cli(owner.port, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', idOf(target.port));
  await until(() => {
    const keys = servers.cli(owner.port, 'CLUSTER', 'GETKEYSINSLOT', slot, '1000').split('\n').filter(Boolean);
    if (keys.length > 0) servers.cli(owner.port, 'MIGRATE', '127.0.0.1', String(target.port), '', '0', '5000', 'KEYS', ...keys);
    return keys.length === 0;
  });
  for (const { port } of [target, owner]) servers.cli(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', idOf(target.port));
  const second = await accepted(rig, 'after');
  await until(() => rig.ended(second), { what: 'a task after the move' });
  expect(await rig.endsOf(second)).toBe(1);
}, 60_000);

const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: 'pipe' });

it('needs the authority of a TLS server, and its own certificate where the server asks', async () => {
  const servers = group();
  const file = (name: string) => join(servers.dir, name);
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  for (const name of ['own', 'other']) openssl(...made, ...names, '-keyout', file(`${name}.key`), '-out', file(`${name}.crt`));
  const certificates = ['--tls-cert-file', file('own.crt'), '--tls-key-file', file('own.key'), '--tls-ca-cert-file', file('own.crt')];
  const { port: plain } = await servers.start();
  servers.cli(plain, 'CONFIG', 'SET', ...certificates.map((word) => word.replace(/^--/, '')), 'tls-port', String(plain + 1));
  const url = (ca: string) => `rediss://127.0.0.1:${plain + 1}?ca=${file(ca)}&cert=${file('own.crt')}&key=${file('own.key')}`;
  const trusting = startProducer(url('own.crt'), 'etude');
  expect(await trusting.redis.ping()).toBe('PONG');
  expect((await trusting.tasks.submit('acme', SPEC, '')).created).toBe(true);
  const warned: object[] = [];
  const logger = { info: () => undefined, warn: (details: object) => void warned.push(details), error: () => undefined };
  const wary = connectRedis(url('other.crt'), 'producer', logger);
  onTestFinished(() => wary.disconnect());
  await expect(wary.ping()).rejects.toThrow(/max retries|timed out/i);
  expect(warned).toMatchObject([{ error: expect.stringMatching(/self-signed certificate|certificate/) as string }]);
  expect(() => connectRedis(url('absent.crt'), 'worker')).toThrow(/a certificate file in ETUDE_REDIS_URL cannot be read: .*absent.crt/);
}, 30_000);

it('works as a user with only the documented commands', async () => {
  const servers = group();
  const { port } = await servers.start();
  const users = readFileSync(new URL('../../../../k8s/redis-users.example.acl', import.meta.url), 'utf8');
  const [, words = ''] = /^user etude (.*)$/m.exec(users) ?? [];
  servers.cli(port, 'ACL', 'SETUSER', 'etude', ...words.split(' '));
  const rig = await start(`redis://etude:change-me@127.0.0.1:${port}`, 'etude');
  const id = await accepted(rig, '');
  await until(() => rig.ended(id));
  await watchCancel(
    rig.redis,
    rig.keys.cancel('acme', id),
    () => Promise.resolve(false),
    () => undefined,
  ).ready;
  await rig.worker.check();
  expect(servers.cli(port, 'ACL', 'LOG').trim()).toBe('');
  for (const [command = '', ...args] of [['CONFIG', 'GET', '*'], ['KEYS', '*'], ['FLUSHALL'], ['GET', 'other:key'], ['ACL', 'WHOAMI']])
    await expect(rig.redis.call(command, ...args)).rejects.toThrow(/^NOPERM/);
  const some = /^\+(auth|hello|select|wait|client.*|cluster.*|bgrewriteaof|evalsha)$/;
  const told = words.split(' ').filter((word) => word.startsWith('+') && !some.test(word));
  servers.cli(port, 'ACL', 'SETUSER', 'etude', ...told.map((word) => word.replace('+', '-')));
  const missing = told.map((word) => word.slice(1)).join(', ');
  await expect(rig.worker.check()).rejects.toThrow(`the user of ETUDE_REDIS_URL may not run ${missing} on keys`);
  servers.cli(port, 'ACL', 'SETUSER', 'etude', ...told);
  await rig.worker.check();
  servers.cli(port, 'ACL', 'SETUSER', 'etude', '-evalsha', '-eval');
  await expect(rig.worker.check()).rejects.toThrow(/NOPERM .*'evalsha'/);
  await expect(rig.tasks.submit('acme', SPEC, '')).rejects.toThrow(/NOPERM .*'evalsha'/);
}, 30_000);
