import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { collect, gatewayForFile, refusal } from './gateway.harness.js';

const rig = gatewayForFile();
const name = 'sandboxes/s0192f0c8a1b2';

async function* header() {
  yield { part: { case: 'header' as const, value: { name, path: 'x' } } };
}

const calls: Array<[string, () => Promise<unknown>]> = [
  ['create', () => rig.client(Sandboxes).createSandbox({})],
  ['get', () => rig.client(Sandboxes).getSandbox({ name })],
  ['list', () => rig.client(Sandboxes).listSandboxes({})],
  ['execute', () => collect(rig.client(Sandboxes).execute({ name, code: '1' }))],
  ['upload', () => rig.client(Sandboxes).uploadFile(header())],
];

it.each(calls)('says how sandboxes are switched on: %s', async (_method, call) => {
  const refused = await refusal(call());
  expect(refused).toMatchObject({ status: status.FAILED_PRECONDITION, code: 'FAILED_PRECONDITION' });
  expect(refused.message).toContain('ETUDE_SANDBOX_INTERNAL_TOKEN');
});

it('says so where a session of tools would need one', async () => {
  const wanted = { prompt: '1', file_names: ['sales.csv'] };
  const answer = await rig.client(Tools).callTool({ tool: 'code_interpreter', agent: 'coder', session: 'report', arguments: wanted });
  expect(answer).toMatchObject({
    success: false,
    error: expect.stringMatching(/sales\.csv.*ETUDE_SANDBOX_INTERNAL_TOKEN.*does\)\. Name a session/),
  });
});
