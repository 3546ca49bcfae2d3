import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '@etude/test-support/ports';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Caller, Door, Draft, ReviewDoor } from './door.js';
import { grpcDoor } from './grpc-door.js';
import { mcpDoor } from './mcp-door.js';
import { restDoor } from './rest-door.js';

/** The same stories over every way in, with the same outcome, in the memory of `ETUDE_TEST_MEMORY`. What MCP has no tools for, a reviewer does over gRPC. */
const WAYS = ['gRPC', 'REST', 'MCP'] as const;
type Way = (typeof WAYS)[number];

let stack: TestStack;
let dir: string;
let doors: Record<Way, Door>;
let reviewers: Record<Way, ReviewDoor & Door>;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'etude-stories-'));
  const [restPort, mcpPort] = [await freePort(), await freePort()];
  const keys = ['user', 'reviewer'].map((role) => ({
    sha256: createHash('sha256').update(`key-of-a-${role}`).digest('hex'),
    tenant: 'acme',
    roles: role === 'user' ? ['user'] : ['user', 'reviewer'],
    name: `a ${role}`,
  }));
  writeFileSync(join(dir, 'keys.json'), JSON.stringify({ keys }));
  stack = await startStack({
    script: fileURLToPath(new URL('./skill-stories.yaml', import.meta.url)),
    memory: process.env['ETUDE_TEST_MEMORY'] === 'qdrant' ? 'qdrant' : 'sqlite',
    env: {
      ETUDE_AUTH_KEYS_PATH: join(dir, 'keys.json'),
      ETUDE_REST_PORT: String(restPort),
      ETUDE_MCP_PORT: String(mcpPort),
    },
  });
  const rest = `http://127.0.0.1:${restPort}`;
  const user = 'key-of-a-user';
  const reviewer = 'key-of-a-reviewer';
  doors = {
    gRPC: grpcDoor(stack.address, user),
    REST: restDoor(rest, user),
    MCP: mcpDoor(new URL(`http://127.0.0.1:${mcpPort}/mcp`), user),
  };
  reviewers = { gRPC: grpcDoor(stack.address, reviewer), REST: restDoor(rest, reviewer), MCP: grpcDoor(stack.address, reviewer) };
});

afterAll(async () => {
  for (const door of [...Object.values(doors ?? {}), ...Object.values(reviewers ?? {})]) await door.close();
  await stack?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** How often a model was asked so far. */
async function modelCalls(): Promise<number> {
  const response = await fetch(`${stack.modelUrl}/scripted/calls`);
  return ((await response.json()) as { calls: unknown[] }).calls.length;
}

const initials = (name: string): Draft => ({
  name,
  description: `Makes the initials of a person's full name, as ${name} does.`,
  code: `def ${name}(full_name: str) -> str:\n    """First letters of all parts, in capitals."""\n    return "".join(part[0].upper() for part in full_name.split())\n`,
  tests: [
    { args: ['ada lovelace'], expected: 'AL' },
    { args: ['grace brewster hopper'], expected: 'GBH' },
    { args: [''], expected: '' },
  ],
});

const area = (name: string, factor: string): Draft => ({
  name,
  description: `Area of a rectangle, for ${name}.`,
  code: `def ${name}(width: float, height: float) -> float:\n    """Width times height."""\n    if width < 0 or height < 0:\n        raise ValueError("a side is negative")\n    return ${factor}\n`,
  tests: [
    { args: [2, 3], expected: 6 },
    { args: [5, 1], expected: 5 },
    { args: [0, 7], expected: 0 },
  ],
});

const floor = (name: string, of: string): Draft => ({
  name,
  description: `Area of all rooms of a floor, for ${name}.`,
  code: `from skills import ${of}\n\n\ndef ${name}(rooms: list) -> float:\n    """Sum over rooms of width and height."""\n    return sum(${of}(width, height) for width, height in rooms)\n`,
  tests: [
    {
      args: [
        [
          [2, 3],
          [1, 4],
        ],
      ],
      expected: 10,
    },
    { args: [[]], expected: 0 },
    { args: [[[100, 100]]], expected: 10_000 },
  ],
});

describe.each(WAYS)('over %s', (way) => {
  const suffix = way.toLowerCase();
  const explorer: Caller = { agent: `explorer-${suffix}` };

  it('an agent explores, registers what works, finds it, and uses it without the model', async () => {
    const door = doors[way];
    const name = `initials_${suffix}`;
    const draft = initials(name);
    expect(await door.execute(explorer, `${draft.code}\nprint(${name}("ada lovelace"))`)).toBe('AL\n');
    const before = await modelCalls();
    expect(await door.register(explorer, draft)).toMatchObject({ status: 'active' });
    expect(await door.search(explorer, 'initials of a full name')).toContain(name);
    expect(await door.use(explorer, name, { full_name: 'alan mathison turing' })).toMatchObject({ success: true, result: 'AMT' });
    expect(await modelCalls()).toBe(before);
  });

  it("keeps a person's skill from another user until an approver promotes it", async () => {
    const [door, reviewer] = [doors[way], reviewers[way]];
    const name = `room_${suffix}`;
    const owner: Caller = { agent: `helper-${suffix}`, user: 'one' };
    const other: Caller = { agent: `helper-${suffix}`, user: 'two' };
    expect(await door.register(owner, area(name, 'width * height'))).toMatchObject({ status: 'active' });
    expect((await door.use(owner, name, { width: 3, height: 4 })).result).toBe(12);
    expect(await door.search(other, `Area of a rectangle, for ${name}.`)).not.toContain(name);
    expect(await door.use(other, name, { width: 3, height: 4 })).toMatchObject({ success: false });
    await reviewer.promote(owner, name);
    expect(await door.use(other, name, { width: 3, height: 4 })).toMatchObject({ success: false });
    await reviewer.approve({ agent: '' }, name);
    expect((await door.use(other, name, { width: 3, height: 4 })).result).toBe(12);
    expect(await door.search(other, `Area of a rectangle, for ${name}.`)).toContain(name);
  });

  it('refuses a version that breaks a dependent, and rolls back one that does not', async () => {
    const [door, reviewer] = [doors[way], reviewers[way]];
    const builder: Caller = { agent: `builder-${suffix}` };
    const [wall, house] = [`area_${suffix}`, `floor_${suffix}`];
    expect(await door.register(builder, area(wall, 'width * height'))).toMatchObject({ status: 'active' });
    expect(await door.register(builder, floor(house, wall))).toMatchObject({ status: 'active' });
    expect(
      (
        await door.use(builder, house, {
          rooms: [
            [2, 3],
            [4, 5],
          ],
        })
      ).result,
    ).toBe(26);

    const broken = await door.register(builder, area(wall, 'min(width * height, 50)'));
    expect(broken.status).toBe('rejected');
    expect(broken.reason).toContain(house);
    expect((await door.use(builder, wall, { width: 10, height: 10 })).result).toBe(100);

    expect(await door.register(builder, area(wall, 'height * width + 0'))).toMatchObject({ status: 'active' });
    expect(await reviewer.rollback(builder, wall)).toBe(1);
    const versions = await reviewer.versions(builder, wall);
    expect(versions.map(({ version, status }) => `${version} ${status}`)).toEqual(['3 deprecated', '2 rejected', '1 active']);
    expect((await door.use(builder, house, { rooms: [[2, 3]] })).result).toBe(6);
  });

  it('has a skill written that somebody missed', async () => {
    const [door, reviewer] = [doors[way], reviewers[way]];
    const wisher: Caller = { agent: `wisher-${suffix}` };
    const name = `count_vowels_${suffix}`;
    expect(await door.use(wisher, name, { text: 'education' })).toMatchObject({ success: false, asked: true });
    const waiting = await until(
      async () =>
        (await reviewer.versions(wisher, name).catch(() => [])).find(({ status }) => status === 'pending_review' || status === 'active'),
      { what: `${name} to be written and verified` },
    );
    if (waiting.status === 'pending_review') await reviewer.approve(wisher, name);
    expect((await door.use(wisher, name, { text: 'education' })).result).toBe(5);
  });
});
