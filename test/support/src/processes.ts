import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface TestProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Everything printed so far, both streams, for messages. */
  output(): string;
  /** SIGKILL; it is gone when this resolves. */
  kill(): Promise<void>;
  /** SIGTERM, SIGKILL after a minute; answers its exit code. */
  stop(): Promise<number | null>;
}

export interface TestProcessOptions {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Text on stdout or stderr that says it is ready. Default: the ready line of a service. */
  readonly ready?: string;
  readonly timeoutMs?: number;
}

const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** Starts `node <args>` and waits for its ready line. The environment is PATH and what is given, nothing else. */
export async function startProcess({
  args,
  env = {},
  cwd,
  ready = '"ready":true',
  timeoutMs = 60_000,
}: TestProcessOptions): Promise<TestProcess> {
  const child = spawn(process.execPath, args, {
    ...(cwd ? { cwd } : {}),
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(new Error(`${args.join(' ')}: ${why}\n${said.slice(-4_000)}`));
    };
    const timer = setTimeout(() => fail(`not ready within ${timeoutMs} ms`), timeoutMs);
    const hear = (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-200_000);
      if (!said.includes(ready)) return;
      clearTimeout(timer);
      resolve();
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      fail(`ended with ${code ?? signal} before it was ready`);
    });
  });
  return {
    pid: child.pid ?? -1,
    child,
    output: () => said,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
        child.kill('SIGTERM');
        await once(child, 'exit');
        clearTimeout(timer);
      }
      return child.exitCode;
    },
  };
}
