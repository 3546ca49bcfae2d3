import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './ports.js';
import { startProcess, type TestProcess } from './processes.js';

/** Real servers that belong together, each with its own folder. All end with `stop`. */
export class RedisGroup {
  readonly dir = mkdtempSync(join(tmpdir(), 'etude-redis-group-'));
  readonly #processes: TestProcess[] = [];

  async start(args: readonly string[] = [], port = 0): Promise<{ readonly port: number; readonly process: TestProcess }> {
    const own = port || (await freePort());
    const dir = mkdtempSync(join(this.dir, 'server-'));
    const place = [
      '--port',
      String(own),
      '--bind',
      '127.0.0.1',
      '--dir',
      dir,
      '--save',
      '',
      '--appendonly',
      'yes',
      '--repl-diskless-sync-delay',
      '0',
    ];
    const process = await startProcess({ command: 'redis-server', args: [...place, ...args], ready: 'Ready to accept connections' });
    this.#processes.push(process);
    return { port: own, process };
  }

  /** A sentinel that watches `mymaster` on this port. Two must agree on an outage. */
  async watch(primary: number, { outageMs = 500 } = {}): Promise<number> {
    const port = await freePort();
    const file = join(mkdtempSync(join(this.dir, 'sentinel-')), 'sentinel.conf');
    const lines = [`down-after-milliseconds mymaster ${outageMs}`, 'failover-timeout mymaster 5000'].map((line) => `sentinel ${line}`);
    writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', `sentinel monitor mymaster 127.0.0.1 ${primary} 2`, ...lines, ''].join('\n'));
    this.#processes.push(await startProcess({ command: 'redis-server', args: [file, '--sentinel'], ready: '+monitor' }));
    return port;
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
