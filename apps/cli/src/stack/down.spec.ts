import { expect, it } from 'vitest';
import { stateText } from './down.js';
import { StackState } from './stack-state.js';

const state = (sandbox: object) =>
  StackState.parse({
    pid: 1,
    address: '127.0.0.1:1',
    redisPort: 2,
    scripted: null,
    model: 'm',
    sandbox,
    ready: true,
    startedAt: 0,
    processes: [],
  });

it('gives the line that looks at the pods of a stack, where it has any', () => {
  const pods = { driver: 'kubernetes', kubeconfig: '/k', namespace: 'n', image: 'i' };
  expect(stateText(state(pods), '/home', {})).toMatch(/^pods +kubectl --kubeconfig \/k -n n get pods$/m);
  expect(stateText(state({ driver: 'local' }), '/home', {})).not.toContain('kubectl');
});
