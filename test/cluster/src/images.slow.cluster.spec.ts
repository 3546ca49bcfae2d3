import { join } from 'node:path';
import { freePort } from '@etude/test-support/ports';
import { startRedis } from '@etude/test-support/redis';
import { expect, it, onTestFinished } from 'vitest';
import { Buildah } from './buildah.js';
import { servicesImage, servicesTwice } from './images.js';
import { type Arch, missingForImages, OWN_ARCH } from './machine.js';
import { cacheDir } from './settings.js';

const note = () => undefined;

it('builds an image of the services with the same digest from the same sources', async () => {
  const [first, second] = await servicesTwice(note);
  expect(first).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(second).toBe(first);
}, 900_000);

/** A gateway and its client in the image: the task is stored in Redis, the fact in SQLite with its vector. */
const PROGRAM = `
const settings = JSON.parse(process.argv[1]);
const of = (path) => import('/etude/' + path);
const { gatewayConfig } = await of('apps/gateway/dist/config/gateway-config.js');
const { startGateway } = await of('apps/gateway/dist/gateway.js');
const { LexicalEmbedder } = await of('libs/domain/dist/retrieval/lexical-embedder.js');
const { createServiceClient } = await of('libs/contracts/dist/grpc-client.js');
const { SERVICES } = await of('libs/contracts/dist/grpc.js');
const gateway = await startGateway(gatewayConfig.parse(settings), async () => new LexicalEmbedder());
const [tasks, memory] = ['tasks', 'memory'].map((name) => createServiceClient(SERVICES[name], '127.0.0.1:' + settings.ETUDE_GRPC_PORT));
const { name } = await tasks.submitTask({ spec: { prompt: 'Print 3.' } });
await memory.storeFact({ agent: 'default', text: 'Tea is served at four.' });
const { hits } = await memory.searchMemory({ query: 'when is tea served', layers: ['semantic'] });
console.log(JSON.stringify([process.arch, (await tasks.getTask({ name })).name === name, hits.map(({ text }) => text)]));
tasks.close();
memory.close();
await gateway.close();
`;

const OTHER: Arch = OWN_ARCH === 'amd64' ? 'arm64' : 'amd64';

it.skipIf(missingForImages(OTHER).length > 0)(
  `builds an image for ${OTHER}, whose gateway takes tasks and facts (needs an emulator of ${OTHER}: qemu-user-static)`,
  async () => {
    const redis = await startRedis({ durable: false });
    onTestFinished(() => redis.stop());
    const { name } = await servicesImage(note, OTHER);
    const settings = {
      ETUDE_LOG_LEVEL: 'silent',
      ETUDE_REDIS_URL: redis.url,
      ETUDE_GRPC_PORT: String(await freePort()),
      ETUDE_AUTH_ANONYMOUS_TENANT: 'test',
      ETUDE_MEMORY_PATH: '/tmp/memory.db',
    };
    const buildah = await Buildah.in(join(cacheDir(), 'buildah'));
    const said = await buildah.output(name, '/etude/bin/node', '--input-type=module', '-e', PROGRAM, JSON.stringify(settings));
    const arch = OTHER === 'amd64' ? 'x64' : OTHER;
    expect(said.trim().split('\n').at(-1)).toBe(JSON.stringify([arch, true, ['Tea is served at four.']]));
  },
  3_600_000,
);
