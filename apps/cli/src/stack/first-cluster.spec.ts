import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Output } from '../output.js';
import { readSettings } from '../settings.js';
import { noteFirstCluster } from './first-cluster.js';

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
