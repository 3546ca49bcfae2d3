import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readSettings } from '../cli.js';
import { Output } from '../output.js';
import { StackState } from '../home/stack-state.js';
import { noteFirstCluster, unapplied } from './up.js';

function told(environment: Readonly<Record<string, string>>, sandbox: 'local' | 'kubernetes' = 'kubernetes'): string {
  let said = '';
  const out = new Output({ write: () => true }, { write: (text: string) => (said += text) }, false);
  noteFirstCluster({ out, root: '/nowhere', settings: readSettings(environment) }, sandbox);
  return said;
}

it('announces a start that compiles Kubernetes, and no other', () => {
  const cache = mkdtempSync(join(tmpdir(), 'etude-cluster-cache-'));
  onTestFinished(() => rmSync(cache, { recursive: true }));
  expect(told({ ETUDE_CLUSTER_CACHE: cache })).toContain('compiles Kubernetes');
  expect(told({ ETUDE_CLUSTER_CACHE: cache, KUBECONFIG: '/a', ETUDE_CLUSTER: 'own' })).toContain('compiles Kubernetes');
  expect(told({ ETUDE_CLUSTER_CACHE: cache, KUBECONFIG: '/a' })).toBe('');
  expect(told({ ETUDE_CLUSTER_CACHE: cache }, 'local')).toBe('');
  mkdirSync(join(cache, 'kubenode'));
  expect(told({ ETUDE_CLUSTER_CACHE: cache })).toBe('');
});

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

  it('leaves out what a stack of an earlier version does not say of itself', () => {
    const earlier = { ...state, modelUrl: null, rolloutWorkers: null, concurrency: null };
    expect(unapplied(earlier, { rolloutWorkers: 2, concurrency: 8 }, { ...SMALL, OPENAI_BASE_URL: 'http://x' })).toEqual([]);
  });
});
