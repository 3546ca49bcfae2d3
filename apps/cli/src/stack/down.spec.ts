import { expect, it } from 'vitest';
import type { StackState } from '../home/stack-state.js';
import { stateText } from './down.js';

const local = { driver: 'local', image: null, namespace: null, kubeconfig: null } as const;
const state: StackState = {
  pid: 1,
  address: '127.0.0.1:1',
  rest: 'http://127.0.0.1:3',
  mcp: 'http://127.0.0.1:3/mcp',
  scripted: null,
  model: 'm',
  modelUrl: 'http://localhost:1/v1',
  sandbox: local,
  memory: 'sqlite',
  embedder: 'lexical',
  ready: true,
  startedAt: 0,
  processes: [],
};
const pods = { driver: 'kubernetes', kubeconfig: '/k', namespace: 'n', image: 'i' } as const;

it.each<[string, Partial<StackState>, RegExp]>([
  ['how to look at its pods', { sandbox: pods }, /^sandboxes +pods of i; .*kubectl --kubeconfig \/k -n n get pods$/m],
  ['which model is asked, and where', {}, /^model +m at http:\/\/localhost:1\/v1$/m],
  ['that a script answers', { scripted: '/s.yaml' }, /^model +script \/s.yaml \[scripted\]$/m],
])('says of a stack %s', (_what, part, line) => {
  expect(stateText({ ...state, ...part }, '/home')).toMatch(line);
});
