import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './ports.js';
import { redisPlace } from './redis.js';
import { startProcess, type TestProcess } from './processes.js';
import { until } from './until.js';

export interface TestServer {
  readonly port: number;
  readonly process: TestProcess;
}

const CLUSTER_NODE = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'];

/** Whether a cluster node has the slot, by its own line of `CLUSTER NODES`. */
function hasSlot(nodes: string, slot: number): boolean {
  const [, first = 1, last = 0] = /myself,master .* (\d+)-(\d+)$/m.exec(nodes) ?? [];
  return Number(first) <= slot && slot <= Number(last);
}

/** Real Redis servers that belong together, each with its own folder. `stop` ends all. */
export class RedisGroup {
  readonly dir = mkdtempSync(join(tmpdir(), 'etude-redis-group-'));
  readonly #processes: TestProcess[] = [];

  async start(args: readonly string[] = [], port = 0): Promise<TestServer> {
    const own = port || (await freePort());
    const dir = mkdtempSync(join(this.dir, 'server-'));
    const flags = [...redisPlace(own, dir), '--appendonly', 'yes', ...args];
    const process = await startProcess({ command: 'redis-server', args: flags, ready: 'Ready to accept connections' });
    this.#processes.push(process);
    return { port: own, process };
  }

  /** Starts a sentinel that watches the primary on this port, as `mymaster`. Two sentinels must agree on an outage. */
  async watch(primary: number, { outageMs = 500 } = {}): Promise<number> {
    const port = await freePort();
    const file = join(mkdtempSync(join(this.dir, 'sentinel-')), 'sentinel.conf');
    const lines = [`down-after-milliseconds mymaster ${outageMs}`, 'failover-timeout mymaster 5000'].map((line) => `sentinel ${line}`);
    writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', `sentinel monitor mymaster 127.0.0.1 ${primary} 2`, ...lines, ''].join('\n'));
    this.#processes.push(await startProcess({ command: 'redis-server', args: [file, '--sentinel'], ready: '+monitor' }));
    return port;
  }

  /** Starts a replica of the primary, in the primary's cluster if there is a cluster. */
  async replicate(primary: number): Promise<TestServer> {
    const isNode = this.cli(primary, 'INFO', 'cluster').includes('cluster_enabled:1');
    const replica = await this.start(isNode ? CLUSTER_NODE : ['--replicaof', '127.0.0.1', String(primary)]);
    const cli = (...words: readonly string[]) => this.cli(replica.port, ...words);
    if (isNode) {
      const id = this.cli(primary, 'CLUSTER', 'MYID').trim();
      cli('CLUSTER', 'MEET', '127.0.0.1', String(primary));
      await until(() => cli('CLUSTER', 'NODES').includes(id), { what: 'a node that knows the primary' });
      cli('CLUSTER', 'REPLICATE', id);
    }
    await until(() => cli('INFO', 'replication').includes('master_link_status:up'), { what: 'a replica' });
    return replica;
  }

  /** A primary with one replica, and three sentinels that know both servers and each other. `url` has no options. */
  async watched({ outageMs = 500 } = {}) {
    const primary = await this.start();
    const replica = await this.replicate(primary.port);
    const sentinels = await Promise.all([1, 2, 3].map(() => this.watch(primary.port, { outageMs })));
    const knows = (port: number) =>
      /num-other-sentinels\n2\n/.test(this.cli(port, 'SENTINEL', 'MASTER', 'mymaster')) &&
      this.cli(port, 'SENTINEL', 'REPLICAS', 'mymaster').includes(String(replica.port));
    await until(() => sentinels.every(knows), { what: 'sentinels that know each other' });
    return { primary, replica, sentinels, url: `redis+sentinel://${sentinels.map((port) => `127.0.0.1:${port}`).join(',')}/mymaster` };
  }

  /** A cluster of three primaries. `primary` is the one with the tag's slot and with a replica. `url` has no options. */
  async clustered(tag = 'etude') {
    const nodes = await Promise.all([1, 2, 3].map(() => this.start(CLUSTER_NODE)));
    const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
    const [first] = nodes as [TestServer, ...TestServer[]];
    this.cli(first.port, '--cluster', 'create', ...addresses, '--cluster-yes');
    await until(() => nodes.every(({ port }) => this.cli(port, 'CLUSTER', 'INFO').includes('cluster_state:ok')), { what: 'a cluster' });
    const slot = Number(this.cli(first.port, 'CLUSTER', 'KEYSLOT', `{${tag}}`));
    const primary = nodes.find(({ port }) => hasSlot(this.cli(port, 'CLUSTER', 'NODES'), slot))!;
    const replica = await this.replicate(primary.port);
    const id = this.cli(replica.port, 'CLUSTER', 'MYID').trim();
    const knows = (port: number) =>
      this.cli(port, 'CLUSTER', 'NODES')
        .split('\n')
        .some((line) => line.startsWith(id) && line.includes('slave'));
    await until(() => nodes.every(({ port }) => knows(port)), { what: 'nodes that know the replica' });
    return { nodes, primary, replica, url: `redis+cluster://${addresses.join(',')}/${tag}` };
  }

  /** Waits until a replica has become the primary, and starts a replica of the new primary. */
  async promoted(port: number): Promise<void> {
    const isPrimary = () => {
      try {
        return this.cli(port, 'ROLE').startsWith('master');
      } catch {
        return false; // a sentinel closes the connections of the server that it promotes
      }
    };
    await until(isPrimary, { what: 'a promotion' });
    await this.replicate(port);
  }

  /** @throws Error when the server answers with an error */
  cli(port: number, ...words: readonly string[]): string {
    return execFileSync('redis-cli', ['-e', '-p', String(port), ...words], { encoding: 'utf8', stdio: 'pipe' });
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.kill()));
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 3 });
  }
}
