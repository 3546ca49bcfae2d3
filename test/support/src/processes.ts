import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface TestProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  /** The latest output on stdout and stderr. */
  output(): string;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
  /** Sends SIGTERM, and SIGKILL after a minute. Resolves to the exit code. */
  stop(): Promise<number | null>;
}

export interface TestProcessOptions {
  /** Default: the running Node. */
  readonly command?: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Text on stdout or stderr that marks the process as ready. Default: the ready line of a service. */
  readonly ready?: string;
  readonly timeoutMs?: number;
}

const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** The environment variables that a program under test inherits: PATH, HOME, and the folder in which `./etude` keeps compiled modules. */
export function programEnvironment(): Record<string, string> {
  const kept = ['PATH', 'HOME', 'NODE_COMPILE_CACHE'].map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(kept.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** Starts a command and waits for its ready line. Its environment has only `env` and `programEnvironment`. */
export async function startProcess({
  command = process.execPath,
  args,
  env = {},
  ready = '"ready":true',
  timeoutMs = 60_000,
}: TestProcessOptions): Promise<TestProcess> {
  const child = spawn(command, args, { env: { ...programEnvironment(), ...env }, stdio: 'pipe' });
  running.add(child);
  const ended = once(child, 'exit').finally(() => running.delete(child));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(new Error(`${command} ${args.join(' ')}: ${why}\n${said.slice(-4_000)}`));
    };
    const timer = setTimeout(() => fail(`not ready within ${timeoutMs} ms`), timeoutMs);
    const hear = (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-200_000);
      if (said.includes(ready)) resolve(clearTimeout(timer));
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    ended.then(
      () => fail(`ended with ${child.exitCode ?? child.signalCode} before it was ready`),
      (error: Error) => fail(error.message),
    );
  });
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await ended;
    return child.exitCode;
  };
  return {
    pid: child.pid ?? -1,
    child,
    output: () => said,
    kill: async () => void (await end('SIGKILL')),
    async stop() {
      const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
      return end('SIGTERM').finally(() => clearTimeout(timer));
    },
  };
}
