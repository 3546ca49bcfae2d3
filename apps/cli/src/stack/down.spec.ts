import { expect, it } from 'vitest';
import type { StackState } from '../home/stack-state.js';
import { stateText } from './down.js';

const local = { driver: 'local', httpPort: 0, image: null, namespace: null, kubeconfig: null } as const;
const state: StackState = {
  pid: 1,
  address: '127.0.0.1:1',
  rest: null,
  mcp: null,
  redisPort: 2,
  scripted: null,
  model: 'm',
  modelUrl: null,
  rolloutWorkers: 1,
  concurrency: 1,
  sandbox: local,
  memory: 'sqlite',
  embedder: 'lexical',
  ready: true,
  startedAt: 0,
  processes: [],
};
const pods = { driver: 'kubernetes', httpPort: 0, kubeconfig: '/k', namespace: 'n', image: 'i' } as const;

it.each<[string, Partial<StackState>, RegExp]>([
  ['how to look at its pods', { sandbox: pods }, /^pods +kubectl --kubeconfig \/k -n n get pods$/m],
  ['which model is asked, and where', { modelUrl: 'http://localhost:1/v1' }, /^model +m at http:\/\/localhost:1\/v1$/m],
  ['where REST is served', { rest: 'http://127.0.0.1:3' }, /^REST +http:\/\/127.0.0.1:3$/m],
  ['where MCP is served', { mcp: 'http://127.0.0.1:3/mcp' }, /^MCP +http:\/\/127.0.0.1:3\/mcp$/m],
])('says of a stack %s', (_what, part, line) => {
  expect(stateText({ ...state, ...part }, '/home')).toMatch(line);
  expect(stateText(state, '/home')).not.toMatch(line);
});
