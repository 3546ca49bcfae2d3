import { SessionRequest } from '@etude/contracts/sandbox';
import type { ToolOutcome } from '@etude/domain/tools/tool-definition';
import { describe, expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { newSandboxId, SandboxSessionStore } from '../sandboxes/sandbox-sessions.js';
import { RedisToolSessions, SESSION_KEPT_MS, ToolCalls } from './tool-sessions.js';

const startQueue = queueForFile();
const KEY = { tenant: 'acme', agent: 'coder', user: null, session: 's1' };
const pin = (name: string, version = 1) => ({ name, tenant: 'acme', agent: 'coder', user: null, version, digest: 'd'.repeat(64) });

function start() {
  const rig = startQueue();
  const sandboxes = new SandboxSessionStore(rig.redis, rig.keys);
  const open = async (requestId: string) => {
    const request = SessionRequest.parse({ tenant: 'acme', requestId, limits: {} });
    return (await sandboxes.open(newSandboxId(), request, { controllerId: 'c1', place: null }, 9)).stored.session.id;
  };
  const end = (id: string) => sandboxes.end('acme', id, 1, 'closed', '');
  return { ...rig, open, end, sessions: new RedisToolSessions(rig.redis, rig.keys), calls: new ToolCalls(rig.redis, rig.keys) };
}

describe('RedisToolSessions', () => {
  it('keeps todos and loaded functions of one session for days', async () => {
    const { sessions, redis, keys } = start();
    expect(await sessions.read(KEY)).toEqual({ todos: [], loaded: [] });
    await sessions.putTodos(KEY, [{ content: 'plan', status: 'in_progress' }]);
    await sessions.load(KEY, [pin('b'), pin('a')]);
    expect(await sessions.load(KEY, [pin('a', 2)])).toEqual([pin('a', 2), pin('b')]);
    expect((await sessions.read(KEY)).todos).toEqual([{ content: 'plan', status: 'in_progress' }]);
    const leftMs = await redis.pttl(keys.toolSession('acme', 'coder', '', 's1'));
    expect(leftMs).toBeGreaterThan(SESSION_KEPT_MS - 60_000);
  });

  it('separates sessions of other tenants, agents, users and session ids', async () => {
    const { sessions } = start();
    await sessions.load(KEY, [pin('a')]);
    const others = [{ tenant: 'globex' }, { agent: 'tester' }, { user: 'bob' }, { session: 's2' }];
    for (const other of others) expect((await sessions.read({ ...KEY, ...other })).loaded).toEqual([]);
  });

  it('records one sandbox, and another after that one', async () => {
    const { sessions, open, end } = start();
    expect(await sessions.readSandbox(KEY)).toBeNull();
    const [first, other, second] = [await open('a'), await open('b'), await open('c')];
    expect(await sessions.keepSandbox(KEY, null, first)).toBe('kept');
    expect(await sessions.keepSandbox(KEY, null, first)).toBe('kept');
    expect(await sessions.keepSandbox(KEY, null, other)).toBe('replaced');
    expect(await sessions.readSandbox(KEY)).toBe(first);
    await end(other);
    expect([await sessions.keepSandbox(KEY, first, other), await sessions.ownSandbox(KEY, other, true)]).toEqual(['ended', 'ended']);
    expect(await sessions.keepSandbox(KEY, first, second)).toBe('kept');
    expect(await sessions.readSandbox(KEY)).toBe(second);
    expect(await sessions.readSandbox({ ...KEY, user: 'bob' })).toBeNull();
  });
});

describe('ToolCalls', () => {
  const call = { tenant: 'acme', agent: 'coder', user: null, requestId: 'r1', content: { tool: 'use_skill' } };
  const outcomes: readonly ToolOutcome[] = [
    { success: true, result: { answer: [1, 'two'] } },
    { success: false, error: 'no' },
    { success: false, error: 'no', result: { seen: true } },
  ];

  it('answers a repeat with the first answer, and refuses its id for another call', async () => {
    const { calls } = start();
    for (const [at, outcome] of outcomes.entries()) {
      const one = { ...call, requestId: `r${at}` };
      expect(await calls.answered(one)).toBeNull();
      await calls.keep(one, outcome);
      await calls.keep(one, { success: true, result: {} });
      expect(await calls.answered(one)).toEqual(outcome);
    }
    await expect(calls.answered({ ...call, requestId: 'r0', content: 'other' })).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
    expect(await calls.answered({ ...call, requestId: 'r0', user: 'bob' })).toBeNull();
  });
});
