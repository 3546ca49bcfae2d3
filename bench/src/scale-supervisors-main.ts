import { createServer, type Socket } from 'node:net';
import { KubeApi } from '@etude/sandbox/kubernetes/kube-api';
import { supervisorNameOf } from '@etude/sandbox/kubernetes/pod-identity';
import { PodWatch } from '@etude/sandbox/kubernetes/pod-watch';
import type { PodView } from '@etude/sandbox/kubernetes/pod-state';
import { encodeFrame, FrameReader, type SupervisorFrame } from '@etude/sandbox/frames';
import { ScalePlace } from './scale-processes.js';

/**
 * The supervisors of all simulated pods in one process. Each names itself, accepts the first claim, and ends on request. They run no code:
 * every execution prints one line at once. They check no token and end no lease.
 */
const PORT = 7070;
/** How long a connection waits until the watch shows which pod has its address. */
const UNKNOWN_MAX_MS = 900;
const LINE = 'first\n';
const RESULT = {
  exit: 'ok',
  exitCode: 0,
  signal: null,
  stdout: '',
  stderr: '',
  stdoutCutBytes: 0,
  stderrCutBytes: 0,
  cpuMs: 0,
  wallMs: 0,
  memoryPeakKiB: 0,
};

class SimulatedSupervisor {
  readonly sockets = new Set<Socket>();
  claim: string | null = null;
  ended = false;

  constructor(private readonly name: string) {}

  greet(socket: Socket): void {
    const send = (frame: SupervisorFrame) => socket.writable && socket.write(encodeFrame(frame));
    const reader = new FrameReader();
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      for (const frame of reader.feed(chunk) as SupervisorFrame[]) for (const answer of this.answers(frame)) send(answer);
    });
    send({ type: 'hello', protocol: 2, python: 'simulated', sandbox: this.name });
  }

  end(): void {
    this.ended = true;
    for (const socket of this.sockets) socket.destroy();
  }

  private answers({ type, claim, executionId }: SupervisorFrame): SupervisorFrame[] {
    if (type === 'bind') {
      this.claim ??= String(claim);
      if (this.claim === claim) return [{ type: 'bound', claim }];
      return [{ type: 'refused', reason: 'another claim holds this sandbox', code: 'claimed' }];
    }
    if (type === 'close') this.end();
    if (type !== 'execute') return [];
    return [
      { type: 'output', executionId, seq: 0, run: 0, stream: 'stdout', text: LINE },
      { type: 'run', executionId, seq: 1, run: 0, result: RESULT },
      { type: 'done', executionId, seq: 2 },
    ];
  }
}

const supervisors = new Map<string, SimulatedSupervisor>();
const byAddress = new Map<string, SimulatedSupervisor>();
const waiting = new Map<string, Set<Socket>>();

function forget(pod: PodView): void {
  const supervisor = supervisors.get(pod.uid);
  if (!supervisor) return;
  supervisor.end();
  supervisors.delete(pod.uid);
  if (pod.ip && byAddress.get(pod.ip) === supervisor) byAddress.delete(pod.ip);
}

function learn(pod: PodView): void {
  if (!pod.ip || pod.deleting) return;
  // kwok sometimes gives a pod another address; the first address stays valid.
  const supervisor = supervisors.get(pod.uid) ?? new SimulatedSupervisor(supervisorNameOf(pod));
  supervisors.set(pod.uid, supervisor);
  byAddress.set(pod.ip, supervisor);
  for (const socket of waiting.get(pod.ip) ?? []) supervisor.greet(socket);
  waiting.delete(pod.ip);
}

function receive(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.setNoDelay(true);
  const address = socket.localAddress ?? '';
  const supervisor = byAddress.get(address);
  if (supervisor && !supervisor.ended) return supervisor.greet(socket);
  const others = waiting.get(address) ?? new Set();
  waiting.set(address, others.add(socket));
  setTimeout(() => others.delete(socket) && socket.bytesWritten === 0 && socket.destroy(), UNKNOWN_MAX_MS);
}

const place = ScalePlace.parse(JSON.parse(process.argv[2] ?? ''));
const api = KubeApi.connect({ kubeconfigPath: place.account, namespace: place.namespace });
const watch = new PodWatch(api, { selector: `etude.dev/pool=${place.installation}` });
watch.subscribe(({ pod, gone }) => (gone || pod.deleting ? forget(pod) : learn(pod)));
await watch.start(AbortSignal.timeout(60_000));
// The parent of this process has ended.
process.stdin.resume().once('end', () => process.exit());
createServer(receive).listen({ port: PORT, host: '0.0.0.0', backlog: 4_096 }, () => process.stdout.write('"ready"\n'));
