import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, renameSync, statSync, type WriteStream } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Program {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Text in the program's output that means "ready". */
  readonly ready: string;
  readonly logPath: string;
  readonly readyTimeoutMs?: number;
  readonly stopTimeoutMs?: number;
  /** If set, the process isn't restarted when it dies. */
  readonly once?: boolean;
  /** Matches output lines about the progress of the start. The first group is reported. */
  readonly progress?: RegExp;
}

/** Long enough for a start on a busy machine. */
const READY_TIMEOUT_MS = 180_000;
/** A service needs at most 10 s to stop. */
const STOP_TIMEOUT_MS = 12_000;
const LAST_WORDS_MS = 100;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** A program that ran this long before it died is restarted after the shortest pause. */
const STEADY_MS = 30_000;
const LOG_MAX_BYTES = 20 * 1024 * 1024;
const TAIL_LINES = 12;

function openLog(path: string): WriteStream {
  mkdirSync(dirname(path), { recursive: true });
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_MAX_BYTES) renameSync(path, `${path}.1`);
  return createWriteStream(path, { flags: 'a' });
}

const isOver = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

/**
 * Starts a program and writes its output to its log. Restarts the program when it dies, with growing pauses, until `stop`.
 *
 * @param onChange called with a note when the program becomes ready, reports progress, dies or is restarted
 */
export class ManagedProcess {
  restarts = 0;
  ready = false;
  readyLine = '';
  #child: ChildProcess | null = null;
  #tail: readonly string[] = [];
  #heardReady: (how: string) => void = () => undefined;
  readonly #stopping = new AbortController();
  readonly #log: WriteStream;

  constructor(
    private readonly program: Program,
    private readonly onChange: (what: string) => void,
  ) {
    this.#log = openLog(program.logPath);
  }

  get name(): string {
    return this.program.name;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Resolves once the program is ready. @throws Error with the end of its output if it ends before or isn't ready in time */
  async start(): Promise<void> {
    const how = await this.#run();
    if (how !== 'ready') throw new Error(`${this.name} ${how}. The end of ${this.program.logPath}:\n${this.#tail.join('\n')}`);
    this.onChange(`${this.name} is ready`);
    void this.#keepAlive();
  }

  /** The process is gone when this resolves. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const child = this.#child;
    if (child && !isOver(child)) {
      const timer = setTimeout(() => child.kill('SIGKILL'), this.program.stopTimeoutMs ?? STOP_TIMEOUT_MS);
      child.kill('SIGTERM');
      if (!isOver(child)) await once(child, 'exit');
      clearTimeout(timer);
    }
    this.ready = false;
    this.#log.end();
  }

  #hear(line: string): void {
    const { progress, ready } = this.program;
    this.#tail = [...this.#tail, line].slice(-TAIL_LINES);
    if (!this.#log.writableEnded) this.#log.write(`${line}\n`);
    if (this.ready) return;
    const said = progress?.exec(line)?.[1];
    if (said) this.onChange(said);
    if (!line.includes(ready)) return;
    this.readyLine = line;
    this.#heardReady('ready');
  }

  /** Starts the process. Returns "ready", or the reason of a failed start after the process was killed. */
  async #run(): Promise<string> {
    const { command, args, env, cwd, readyTimeoutMs: timeoutMs = READY_TIMEOUT_MS } = this.program;
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    this.#tail = [];
    for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', (line) => this.#hear(line));
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#heardReady = resolve;
    const timer = setTimeout(() => resolve(`was not ready within ${timeoutMs / 1_000} s`), timeoutMs);
    child.once('error', (error) => resolve(`could not be started: ${error.message}`));
    // Output may still come after `exit`. `close` may never come, if a child of the program holds the pipe.
    child.once('exit', (code, signal) => setTimeout(resolve, LAST_WORDS_MS, `ended with ${code ?? signal} before it was ready`));
    const how = await promise;
    clearTimeout(timer);
    this.ready = how === 'ready';
    if (!this.ready) child.kill('SIGKILL');
    return how;
  }

  async #keepAlive(): Promise<void> {
    for (let waitMs = FIRST_WAIT_MS; ;) {
      const since = performance.now();
      const child = this.#child;
      if (child === null) return;
      if (!isOver(child)) await once(child, 'exit');
      this.ready = false;
      if (this.#stopping.signal.aborted) return;
      const how = child.exitCode ?? child.signalCode;
      if (this.program.once) return this.onChange(`${this.name} ended with ${how}; run ./etude down and ./etude up to restart it`);
      this.onChange(`${this.name} ended with ${how}; restarting`);
      waitMs = performance.now() - since > STEADY_MS ? FIRST_WAIT_MS : Math.min(waitMs * 2, LONGEST_WAIT_MS);
      try {
        await sleep(waitMs, undefined, { signal: this.#stopping.signal });
      } catch {
        return; // stopped while it waited
      }
      this.restarts++;
      if ((await this.#run()) === 'ready') this.onChange(`${this.name} is back`);
    }
  }
}
