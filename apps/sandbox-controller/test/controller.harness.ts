import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { decodeStatus, isServiceError } from '@etude/contracts/rich-status';
import type { SandboxSession } from '@etude/contracts/sandbox';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { ControllerChannels, ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import { RedisKeys } from '@etude/queue/redis/keys';
import { connectRedis } from '@etude/queue/redis/redis';
import { RouterWorkSandboxes } from '@etude/queue/sandboxes/router-work-sandboxes';
import { SandboxRouter } from '@etude/queue/sandboxes/sandbox-router';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { startRedis } from '@etude/test-support/redis';
import { until } from '@etude/test-support/until';

export const TOKEN = 'a token of gateways and controllers';

const APP = fileURLToPath(new URL('..', import.meta.url));
const TSC = fileURLToPath(new URL('../../../node_modules/.bin/tsc', import.meta.url));

export type SandboxesClient = ServiceClient<typeof Sandboxes>;

export type TestInstallation = Awaited<ReturnType<typeof startInstallation>>;
export type TestController = Awaited<ReturnType<TestInstallation['start']>>;

/** A client that sends the tenant with each call, as gateways do. */
function forTenant(client: SandboxesClient, tenant: string): SandboxesClient {
  const calls = Object.entries(client).map(([name, call]) => {
    if (name === 'close') return [name, call] as const;
    const send = call as (request: unknown, settings?: object) => unknown;
    return [name, (request: unknown, settings?: object) => send(request, { ...settings, metadata: { 'etude-tenant': tenant } })] as const;
  });
  return Object.fromEntries(calls);
}

/** A Redis, and controllers as real processes with local sandboxes. Compiles the service first. */
export async function startInstallation() {
  await promisify(execFile)(TSC, ['-b', APP]);
  const redis = await startRedis();
  const connection = connectRedis(redis.url, 'producer');
  const keys = new RedisKeys('etude');
  const directory = new ControllerDirectory(connection, keys);
  const sessions = new SandboxSessionStore(connection, keys);
  const router = new SandboxRouter({ sessions, directory, channels: new ControllerChannels(TOKEN) });
  const clients: SandboxesClient[] = [];
  const processes: TestProcess[] = [];
  const start = async () => {
    const before = new Set((await directory.live()).map(({ controllerId }) => controllerId));
    const settings = {
      ETUDE_REDIS_URL: redis.url,
      ETUDE_LOG_LEVEL: 'warn',
      ETUDE_SANDBOX_WARM: '1',
      ETUDE_SANDBOX_INTERNAL_TOKEN: TOKEN,
    };
    const child = await startProcess({ args: [`${APP}dist/main.js`], env: settings });
    processes.push(child);
    const found = await until(async () => (await directory.live()).find(({ controllerId }) => !before.has(controllerId)), {
      what: 'the announcement of a controller',
    });
    /** A client that calls like a gateway, for this tenant. */
    const client = (tenant = 'acme') => {
      const made = createServiceClient(Sandboxes, found.address, { apiKey: TOKEN });
      clients.push(made);
      return forTenant(made, tenant);
    };
    return { process: child, address: found.address, client };
  };
  return {
    /** The record of a session. */
    async session(tenant: string, name: string): Promise<SandboxSession> {
      const stored = await sessions.get(tenant, name.slice('sandboxes/'.length));
      if (stored === null) throw new Error(`there is no ${name}`);
      return stored.session;
    },
    openCount: (tenant: string) => sessions.openCount(tenant),
    start,
    /** The sandboxes as rollout workers use them. */
    workSandboxes: new RouterWorkSandboxes(router),
    async close() {
      router.close();
      for (const client of clients) client.close();
      await Promise.all(processes.map((child) => child.stop()));
      connection.disconnect();
      await redis.stop();
    },
  };
}

/** Message, code and details of the error with which a call was refused. */
export async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => new Error('the call was answered'),
    (refused: unknown) => refused,
  );
  if (!isServiceError(error)) throw error;
  return { message: error.details, ...decodeStatus(error.metadata) };
}
