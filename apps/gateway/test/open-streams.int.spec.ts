import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { status } from '@etude/contracts/grpc-client';
import { freePort } from '@etude/test-support/ports';
import { jwtIssuer } from '@etude/test-support/jwt-issuer';
import { expect, it } from 'vitest';
import { bearer, restDoor } from './rest-door.js';
import { collect, gatewayForFile, refusal, SPEC, writeKeys } from './gateway.harness.js';

const issuer = jwtIssuer();
const door = restDoor();
let mcp = '';
const rig = gatewayForFile(async () => {
  const mcpPort = String(await freePort());
  mcp = `http://127.0.0.1:${mcpPort}/mcp`;
  return {
    ...(await door.settings()),
    ...issuer.settings(rig.dir),
    ETUDE_MCP_PORT: mcpPort,
    ETUDE_SKILLS_ENABLED: 'true',
    ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-this-test',
  };
});

const OVER = { status: status.UNAUTHENTICATED };

const ECHO = `def echo(value: int) -> int:
    """Gives back what it is given."""
    return value
`;

/** A tool of an MCP client that waits for a worker, of which there is none. */
function callTool(): Promise<Response> {
  const examples = [{ args: [1] }];
  const params = { name: 'register_skill', arguments: { name: 'echo', description: 'Gives back what it is given.', code: ECHO, examples } };
  const accept = 'application/json, text/event-stream';
  return fetch(mcp, {
    method: 'POST',
    headers: { ...bearer('globex'), 'content-type': 'application/json', accept, 'mcp-protocol-version': '2025-06-18' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta: { progressToken: 1 } } }),
  });
}

it('ends open streams whose JWT expired or whose key was revoked or changed, and no others', async () => {
  const [{ name }, { name: other }] = await Promise.all([
    rig.tasks('acme').submitTask({ spec: SPEC }),
    rig.tasks('globex').submitTask({ spec: SPEC }),
  ]);
  // The gateway's clock may be 30 s behind that of the issuer.
  const shortLived = rig.clientWith(Tasks, issuer.token({ exp: Date.now() / 1_000 - 27 }));
  const expired = refusal(collect(shortLived.watchTask({ name })));
  const revoked = refusal(collect(rig.tasks('globex').watchTask({ name: other })));
  const waiting = refusal(rig.tasks('globex').waitTask({ name: other, timeout: { seconds: 60n } }, { timeoutMs: 120_000 }));
  const changed = refusal(collect(rig.tasks('ops').watchTask({ name })));
  const staying = collect(rig.tasks('acme').watchTask({ name }));
  const [events, tool] = await Promise.all([
    door.send('GET', `/v1/${other}:watch`, null, { ...bearer('globex'), accept: 'text/event-stream' }),
    callTool(),
  ]);
  expect([events.status, tool.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  writeKeys(rig.keysPath, ['acme', 'ops', 'rev'], { ops: { tenant: 'initech', roles: ['user'] } });
  expect(await expired).toMatchObject({ ...OVER, message: expect.stringContaining('expired') as string, retryAfterMs: undefined });
  expect(await revoked).toMatchObject({ ...OVER, message: expect.stringContaining('unknown') as string, retryAfterMs: undefined });
  expect(await waiting).toMatchObject(OVER);
  expect(await changed).toMatchObject({ ...OVER, message: expect.stringContaining('changed') as string });
  await expect(events.text()).rejects.toThrow('terminated');
  await expect(tool.text()).rejects.toThrow('terminated');
  await rig.finish('acme', name);
  expect((await staying).at(-1)?.event.case).toBe('finished');
});
