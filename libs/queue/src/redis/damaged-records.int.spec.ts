import { ExecutionRequest, SessionRequest } from '@etude/contracts/sandbox';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { expect, it, onTestFinished } from 'vitest';
import { never, WRITE } from '../../test/rig.js';
import { RedisToolSessions } from '../agents/tool-sessions.js';
import { AgentSettingsStore } from '../agents/agent-settings-store.js';
import { WantedSkills } from '../agents/wanted-skills.js';
import { QueueErasure } from '../erasure/queue-erasure.js';
import { ExecutionStore } from '../executions/executions.js';
import { Producer } from '../jobs/producer.js';
import { ConsolidationStore } from '../memory/consolidation-store.js';
import { OutboxReader, RedisMemoryOutbox } from '../memory/memory-outbox.js';
import { UpkeepStore } from '../memory/upkeep-store.js';
import { ControllerDirectory } from '../sandboxes/controllers.js';
import { newSandboxId, SandboxSessionStore } from '../sandboxes/sandbox-sessions.js';
import { RedisWorlds } from '../worlds/worlds-store.js';

const file = redisForFile();
const SECRET = 'the secret content';
const DAMAGED = `${SECRET}, and no JSON`;
const PLAN = { seed: 'moor', width: 8, height: 8 };
const CODER = { agent: 'coder', user: null };
const WISH = { tenant: 'acme', user: null, description: 'Reads CSV.', example: null };

function start() {
  const errors: unknown[] = [];
  const logger = { info: () => undefined, warn: () => undefined, error: (details: object) => void errors.push(details) };
  const producer = new Producer(file.url, file.prefix(), logger);
  onTestFinished(() => producer.close());
  const { redis, keys } = producer;
  const sessions = new SandboxSessionStore(redis, keys);
  const worlds = new RedisWorlds(redis, keys);
  const wishes = new WantedSkills(producer);
  const settings = new AgentSettingsStore(redis, keys, ProceduralMemorySettings.parse({}));
  return { errors, producer, redis, keys, sessions, worlds, wishes, settings, runs: new ConsolidationStore(producer) };
}
type Rig = ReturnType<typeof start>;

interface Kind {
  readonly make: (rig: Rig, name: string) => Promise<string>;
  /** Lists the ids or names of the records. */
  readonly list: (rig: Rig) => Promise<readonly string[]>;
  /** Replaces the stored text of a record. */
  readonly edit: (rig: Rig, id: string, change: (text: string) => string) => Promise<unknown>;
}

const inHash = async ({ redis }: Rig, key: string, field: string, change: (text: string) => string) =>
  redis.hset(key, field, change((await redis.hget(key, field)) ?? ''));
const inKey = async ({ redis }: Rig, key: string, change: (text: string) => string) => redis.set(key, change((await redis.get(key)) ?? ''));

const KINDS = {
  'sandbox session': {
    make: async ({ sessions }, name) => {
      const request = SessionRequest.parse({ tenant: 'acme', requestId: name, limits: {} });
      return (await sessions.open(newSandboxId(), request, { controllerId: 'c1', place: null }, 9)).stored.session.id;
    },
    list: async ({ sessions }) => (await sessions.list('acme', { pageSize: 9, state: 'open' })).items.map(({ id }) => id),
    edit: (rig, id, change) => inHash(rig, rig.keys.sandbox('acme', id), 'spec', change),
  },
  world: {
    make: async ({ worlds }, name) => (await worlds.create('acme', name, PLAN)).name,
    list: async ({ worlds }) => (await worlds.list('acme', { limit: 2 })).map(({ name }) => name),
    edit: (rig, id, change) => inKey(rig, rig.keys.world('acme', id), change),
  },
  "agent's settings": {
    make: async ({ settings }, name) => (await settings.update('acme', name, { maxSkills: 7 })).agent,
    list: async ({ settings }) => (await settings.list('acme', { limit: 2 })).map(({ agent }) => agent),
    edit: (rig, id, change) => inHash(rig, rig.keys.agents('acme'), id, (text) => text.replace(/ .*/, (json) => ` ${change(json)}`)),
  },
  wish: {
    make: async ({ wishes }, name) => (await wishes.request({ wish: { ...WISH, agent: 'coder', skill: name }, requestId: '' })).id,
    list: async ({ wishes }) => (await wishes.list('acme', { limit: 2 })).wishes.map(({ id }) => id),
    edit: (rig, id, change) => inHash(rig, rig.keys.wantedSkill('acme', id), 'wish', change),
  },
  'consolidation run': {
    make: async ({ runs }) => (await runs.create('acme', { agent: null, days: 1, dryRun: true }, '')).id,
    list: async ({ runs }) => (await runs.list('acme', { pageSize: 9 })).items.map(({ id }) => id),
    edit: (rig, id, change) => inKey(rig, rig.keys.consolidation('acme', id), change),
  },
} satisfies Readonly<Record<string, Kind>>;

/** Adds a field to every object of a JSON text, except to maps with free names. */
const grown = (text: string) => text.replaceAll(/(?<!"(?:labels|taken)":)\{(?!\})/g, '{"fieldOfALaterVersion":1,');

it.each(Object.entries<Kind>(KINDS))('lists each %s except a damaged one, which it logs without its content', async (_name, kind) => {
  const rig = start();
  const { make, list, edit } = kind;
  const damaged = await make(rig, 'a');
  const others = [await make(rig, 'b'), await make(rig, 'c')];
  await edit(rig, damaged, () => DAMAGED);
  await edit(rig, others[0] ?? '', grown);
  const all = [await list(rig), await list(rig)];
  expect(all.map((one) => one.toSorted())).toEqual([others.toSorted(), others.toSorted()]);
  expect(rig.errors).toEqual([{ record: expect.stringContaining(damaged), reason: expect.not.stringContaining(SECRET) }]);
});

it('lists live sandbox controllers except one with a damaged announcement', async () => {
  const { redis, keys, errors } = start();
  const directory = new ControllerDirectory(redis, keys);
  for (const controllerId of ['a', 'b']) await directory.announce({ controllerId, address: 'host:1', sessions: 0, sessionsMax: 1 });
  await redis.hset(keys.controllers, 'a', DAMAGED);
  expect(await directory.live()).toMatchObject([{ controllerId: 'b' }]);
  expect(errors).toEqual([{ record: 'a sandbox controller', reason: 'SyntaxError' }]);
});

it("changes an agent's settings that a later version wrote, and refuses an unknown field in a change", async () => {
  const rig = start();
  await rig.settings.update('acme', 'coder', { maxSkills: 7 });
  await KINDS["agent's settings"].edit(rig, 'coder', grown);
  expect(await rig.settings.update('acme', 'coder', { preferSkills: false })).toMatchObject({ settings: { maxSkills: 7 } });
  await expect(rig.settings.update('acme', 'coder', { odd: 1 } as object)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});

it('reads a memory write and an execution with fields of a later version', async () => {
  const rig = start();
  const { producer, redis, keys } = rig;
  await new RedisMemoryOutbox(producer).put('acme', 'w1', WRITE);
  await inHash(rig, keys.memoryOutbox('acme'), 'w1', grown);
  expect(await new OutboxReader(redis, keys).load('acme', 'w1')).toEqual(WRITE);
  const executions = new ExecutionStore(redis, keys);
  const runs = [{ kind: 'program', code: 'pass' }];
  const request = ExecutionRequest.parse({ executionId: 'verify-x', tenant: 'acme', limits: {}, runs, owner: CODER });
  await executions.prepare(request);
  await inHash(rig, keys.execution('acme', 'verify-x'), 'request', grown);
  expect((await executions.load('acme', 'verify-x'))?.request).toEqual(request);
});

it('reads the loaded functions of a session with fields of a later version', async () => {
  const rig = start();
  const sessions = new RedisToolSessions(rig.redis, rig.keys);
  const key = { ...CODER, tenant: 'acme', session: 's' };
  const [pin] = await sessions.load(key, [{ ...CODER, tenant: 'acme', name: 'add', version: 1, digest: 'd'.repeat(64) }]);
  await inHash(rig, rig.keys.toolSession('acme', 'coder', '', 's'), 'loaded:add', grown);
  expect((await sessions.read(key)).loaded).toEqual([pin]);
});

it('refuses the subject of an erasure with an unknown field, because that may narrow the subject', async () => {
  const rig = start();
  const upkeep = new UpkeepStore(rig.producer);
  const { id } = await upkeep.requestErasure({ tenant: 'acme', requestId: '', asked: {} }, { user: 'bob' });
  expect(await upkeep.loadErasure('acme', id)).toMatchObject({ subject: { user: 'bob' } });
  await inKey(rig, rig.keys.erasure('acme', id), (text) => text.replace('"subject":{', '"subject":{"since":1,'));
  await expect(upkeep.loadErasure('acme', id)).rejects.toMatchObject({ code: 'INTERNAL' });
});

it('erases the data of an owner beside damaged records, and these with their tenant', async () => {
  const rig = start();
  const { redis, keys, worlds, producer } = rig;
  for (const name of ['damaged', 'whole']) await worlds.create('acme', name, PLAN);
  await worlds.move({ tenant: 'acme', ...CODER }, 'whole', { tool: 'move_to', x: -1, y: 0 }, 'm1');
  const damaged = await KINDS.wish.make(rig, 'a');
  const unread = await KINDS.wish.make(rig, 'b');
  await redis.set(keys.world('acme', 'damaged'), DAMAGED);
  await redis.hset(keys.wantedSkill('acme', damaged), 'wish', DAMAGED);
  await redis.hset(keys.wantedSkill('acme', unread), 'state', 'no state');
  const write = { ...WRITE, scope: { tenant: 'acme', ...CODER, fieldOfALaterVersion: 1 } };
  await redis.hset(keys.memoryOutbox('acme'), { w1: JSON.stringify(write), w2: DAMAGED });
  await redis.set(keys.consolidation('acme', 'c1'), DAMAGED);
  await redis.hset(keys.execution('acme', 'verify-x'), 'request', DAMAGED);
  await redis.set(keys.erasure('acme', 'e1'), DAMAGED);
  const erasure = new QueueErasure(producer, { skillIsGone: async () => false });
  await erasure.erase('acme', { agent: 'coder' }, never());
  expect((await worlds.get('acme', 'whole'))?.world.characters).toEqual([]);
  const left = [await redis.zrange(keys.wantedSkills('acme'), '0', '-1'), await redis.hkeys(keys.memoryOutbox('acme'))];
  expect(left).toEqual([[damaged], ['w2']]);
  expect(rig.errors).toHaveLength(2);
  await erasure.erase('acme', { all: true }, never());
  const rest = [
    keys.world('acme', 'damaged'),
    keys.wantedSkill('acme', damaged),
    keys.memoryOutbox('acme'),
    keys.consolidation('acme', 'c1'),
  ];
  expect(await redis.exists(...rest, keys.execution('acme', 'verify-x'))).toBe(0);
});
