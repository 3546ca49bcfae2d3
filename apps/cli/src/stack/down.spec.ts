import { expect, it } from 'vitest';
import { figuresOf, poolFigures, stateText } from './down.js';
import { StackState } from '../home/stack-state.js';

it('reads what a controller tells, and leaves out what it does not', () => {
  expect(figuresOf('# HELP etude_sandbox_warm x\netude_sandbox_warm 3\netude_sandbox_claims_waiting 1e+1\n')).toEqual({
    ready: 3,
    waiting: 10,
  });
});

it('says nothing of a controller that does not answer', async () => {
  expect(await poolFigures(1)).toEqual({});
});

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

it('says which model is asked, and where', () => {
  expect(stateText({ ...state({}), modelUrl: 'http://localhost:1/v1' }, '/home', {})).toMatch(/^model +m at http:\/\/localhost:1\/v1$/m);
  expect(stateText(state({}), '/home', {})).toMatch(/^model +m$/m);
});

it('says where REST and MCP are, where they are served', () => {
  const served = { ...state({}), rest: 'http://127.0.0.1:3', mcp: 'http://127.0.0.1:3/mcp' };
  expect(stateText(served, '/home', {})).toMatch(/^REST +http:\/\/127.0.0.1:3\nMCP +http:\/\/127.0.0.1:3\/mcp$/m);
  expect(stateText(state({}), '/home', {})).not.toMatch(/^REST /m);
});
