import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StackState } from '../home/stack-state.js';
import { unapplied } from './up.js';

const state = StackState.parse({
  pid: 1,
  address: '127.0.0.1:1',
  redisPort: 2,
  scripted: null,
  model: 'small',
  modelUrl: 'http://localhost:1/v1',
  rolloutWorkers: 1,
  concurrency: 4,
  ready: true,
  startedAt: 0,
  embedder: 'lexical',
  memory: 'sqlite',
  rest: null,
  mcp: null,
  sandbox: { driver: 'local', httpPort: 0, image: null, namespace: null, kubeconfig: null },
  processes: [],
});
const SMALL = { OPENAI_MODEL: 'small', OPENAI_BASE_URL: 'http://localhost:1/v1/' };

describe('unapplied', () => {
  it('names each flag that the stack was not started with', () => {
    const asked = { scripted: 'a.yaml', sandbox: 'kubernetes', memory: 'qdrant', rolloutWorkers: 2, concurrency: 8 } as const;
    expect(unapplied(state, asked, SMALL)).toEqual([
      '--scripted a.yaml',
      '--sandbox kubernetes',
      '--memory qdrant',
      '--rollout-workers 2',
      '--concurrency 8',
    ]);
  });

  it('says nothing of what is as it was asked for, or was not asked for', () => {
    const asked = { sandbox: 'local', memory: 'sqlite', rolloutWorkers: 1, concurrency: 4 } as const;
    expect(unapplied(state, asked, SMALL)).toEqual([]);
    expect(unapplied(state, {}, {})).toEqual([]);
    const scripted = { ...state, scripted: resolve('a.yaml'), model: 'scripted', modelUrl: null };
    expect(unapplied(scripted, { scripted: 'a.yaml' }, SMALL)).toEqual([]);
  });

  it('names a model that it does not ask, and no key', () => {
    expect(unapplied(state, {}, { OPENAI_MODEL: 'large', OPENAI_BASE_URL: 'http://me:secret@localhost:2/v1' })).toEqual([
      'OPENAI_BASE_URL http://localhost:2/v1',
      'OPENAI_MODEL large',
    ]);
    expect(unapplied({ ...state, scripted: '/a.yaml', model: 'scripted', modelUrl: null }, {}, SMALL)).toHaveLength(2);
  });
});
