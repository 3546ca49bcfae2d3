import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { arch } from 'node:process';
import { fileURLToPath } from 'node:url';
import { SandboxLimits, type SandboxRun } from '@etude/contracts/sandbox';
import { freePort } from '@etude/test-support/ports';
import { until } from '@etude/test-support/until';
import { encodeFrame, FrameReader, type SupervisorFrame } from '../src/frames.js';
import { seccompFilter } from '../src/seccomp.js';

/** The token of every supervisor that this fixture starts, and the claim that most tests use. */
export const TOKEN = 'a token';
export const CLAIM = 'claim-1';
const NOBODY = 65_534;

export interface Frame extends SupervisorFrame {
  readonly code?: string;
  readonly seq?: number;
  readonly text?: string;
  readonly result?: Readonly<Record<string, unknown>>;
}

/** The text that was printed, put together from the frames. */
export function printed(frames: readonly Frame[], stream: 'stdout' | 'stderr'): string {
  const told = frames.map((frame) => (frame.type === 'output' && frame.stream === stream ? frame.text : frame.result?.[stream]));
  return told.filter((text) => typeof text === 'string').join('');
}

/** Limits of an execution with some of them changed. */
export const limitsOf = (more: Partial<SandboxLimits> = {}) => SandboxLimits.parse(more);

/** Runs `runner/pod.py` as process 1 of its own namespaces (but not network), like in a pod but without Kubernetes. */
export class SupervisorProcess {
  stderr = '';
  readonly ended: Promise<void>;
  private readonly peers: Peer[] = [];

  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    readonly port: number,
  ) {
    child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.ended = new Promise((resolve) => child.once('close', () => resolve()));
  }

  /**
   * @param env settings in addition to those of every pod
   * @param before Python code that process 1 runs first
   * @param packagesPath folder with the packages of its image
   */
  static async start(env: Readonly<Record<string, string>> = {}, before = '', packagesPath?: string): Promise<SupervisorProcess> {
    const folder = mkdtempSync(join(tmpdir(), 'etude-supervisor-'));
    cpSync(fileURLToPath(new URL('../runner', import.meta.url)), folder, {
      recursive: true,
      filter: (path) => !path.includes('__pycache__'),
    });
    chmodSync(folder, 0o755);
    const port = await freePort();
    const settings = {
      PYTHONHASHSEED: '0',
      ETUDE_SANDBOX_HOST: '127.0.0.1',
      ETUDE_SANDBOX_PORT: String(port),
      ETUDE_SANDBOX_NAME: 'pod-1',
      ETUDE_SANDBOX_TOKEN_SHA256: createHash('sha256').update(TOKEN).digest('hex'),
      ETUDE_SANDBOX_FILTER: seccompFilter(arch, { network: false })?.toString('hex') ?? '',
      ...env,
    };
    const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
    const [program = '', ...args] = command(folder, settings, before, packagesPath);
    const child = spawn(program, args, { cwd: '/', env: {}, stdio: ['ignore', 'ignore', 'pipe'], ...user });
    return new SupervisorProcess(child, folder, port);
  }

  get alive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** The pid of its bubblewrap. */
  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** A connection whose greeting was read. */
  async connect(): Promise<Peer> {
    const peer = await this.connectUngreeted();
    await peer.next('hello');
    return peer;
  }

  async connectUngreeted(): Promise<Peer> {
    const peer = await until(() => {
      if (!this.alive) throw new Error(`the supervisor has ended: ${this.stderr}`);
      return Peer.open(this.port).catch(() => null);
    });
    this.peers.push(peer);
    return peer;
  }

  /** A bound connection. Its lease is never renewed, but is longer than all tests of a file. */
  async bound(claim = CLAIM, leaseMs = 3_600_000): Promise<Peer> {
    const peer = await this.connect();
    peer.send({ type: 'bind', claim, token: TOKEN, leaseMs });
    await peer.next('bound');
    return peer;
  }

  async stop(): Promise<void> {
    for (const peer of this.peers) peer.close();
    if (this.alive) this.child.kill('SIGKILL');
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** One connection of a controller. Reads only while somebody waits for a frame. */
export class Peer {
  private readonly frames: AsyncGenerator<Frame>;
  private executions = 0;

  private constructor(private readonly socket: Socket) {
    socket.on('error', () => undefined);
    this.frames = framesOf(socket);
  }

  static async open(port: number): Promise<Peer> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    await once(socket, 'connect');
    return new Peer(socket);
  }

  send(frame: Record<string, unknown>): void {
    this.socket.write(encodeFrame(frame));
  }

  /** Writes any bytes, which need not be a frame. */
  write(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Requests an execution. @returns its id */
  execute(runs: readonly SandboxRun[], more: Record<string, unknown> = {}): string {
    const executionId = `execution-${this.socket.localPort}-${(this.executions += 1)}`;
    this.send({ type: 'execute', claim: CLAIM, executionId, files: [], limits: limitsOf(), stopOnFailure: false, runs, ...more });
    return (more.executionId as string | undefined) ?? executionId;
  }

  /** The result of one run, with all that it printed and displayed. */
  async run(run: SandboxRun, more: Record<string, unknown> = {}): Promise<Readonly<Record<string, unknown>>> {
    this.execute([run], more);
    const frames = await this.until('done');
    const displays = frames.filter(({ type }) => type === 'display').map(({ data }) => data);
    const result = frames.find(({ type }) => type === 'run')?.result;
    return { ...result, stdout: printed(frames, 'stdout'), stderr: printed(frames, 'stderr'), displays };
  }

  /** The next frame. @throws Error when it is of another type, and when the connection has ended */
  async next(type?: string): Promise<Frame> {
    const { value: frame } = (await this.frames.next()) as { value: Frame | undefined };
    if (!frame) throw new Error('the connection has ended');
    if (type && frame.type !== type) throw new Error(`${JSON.stringify(frame)} came instead of ${type}`);
    return frame;
  }

  /** Frames up to the first of a type. A refusal ends it as well. */
  async until(type: string): Promise<Frame[]> {
    const frames: Frame[] = [];
    for (;;) {
      const frame = await this.next();
      frames.push(frame);
      if (frame.type === type || frame.type === 'refused') return frames;
    }
  }

  /** Discards all frames. Resolves when the connection has ended. */
  async drain(): Promise<void> {
    for (let more = true; more;)
      more = await this.frames.next().then(
        ({ done }) => done !== true,
        () => false,
      );
  }

  close(): void {
    this.socket.destroy();
  }
}

async function* framesOf(socket: Socket): AsyncGenerator<Frame> {
  const reader = new FrameReader();
  for await (const chunk of socket as AsyncIterable<Buffer>) yield* reader.feed(chunk) as Frame[];
}

function command(folder: string, settings: Readonly<Record<string, string>>, before: string, packagesPath?: string): string[] {
  const start = `${before}
import sys; sys.path.insert(0, '/opt/etude'); sys.path.append('/opt/etude/packages'); from runner.pod import main; main()`;
  const walls =
    '--unshare-user --unshare-pid --unshare-ipc --unshare-uts --as-pid-1 --die-with-parent --cap-drop ALL --uid 1000 --gid 1000';
  const system = '--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev';
  const writable = `--size ${128 * 1024 * 1024} --tmpfs /tmp --size ${8 * 1024 * 1024} --tmpfs /dev/shm`;
  const environment = Object.entries(settings).flatMap(([name, value]) => ['--setenv', name, value]);
  const mounts = [
    ...system.split(' '),
    ...writable.split(' '),
    '--ro-bind',
    folder,
    '/opt/etude/runner',
    ...(packagesPath === undefined ? [] : ['--ro-bind', packagesPath, '/opt/etude/packages']),
    '--remount-ro',
    '/dev',
    '--remount-ro',
    '/',
  ];
  const python = '/usr/bin/python3 -s -S -B -P -X utf8 -c'.split(' ');
  return ['bwrap', ...walls.split(' '), '--clearenv', ...environment, ...mounts, ...python, start];
}
