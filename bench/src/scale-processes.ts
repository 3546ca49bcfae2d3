import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { z } from 'zod';

/** The place where the processes of the bench find the cluster. */
export const ScalePlace = z.strictObject({ account: z.string(), namespace: z.string(), installation: z.string() });
export type ScalePlace = z.infer<typeof ScalePlace>;

export const ControllerTask = z.strictObject({
  place: ScalePlace,
  /** Pods that wait for a claim. */
  pods: z.number(),
  podsMax: z.number(),
  startsMax: z.number(),
  template: z.record(z.string(), z.unknown()),
  tokenSecret: z.string(),
  /** Most time for filling a pool, in s. Afterwards the process reports its progress and gives up. */
  fullMaxSeconds: z.number(),
});
export type ControllerTask = z.infer<typeof ControllerTask>;

export const ControllerCommand = z.discriminatedUnion('do', [
  /** Answers once all wanted pods are connected. */
  z.strictObject({ do: z.literal('fill') }),
  z.strictObject({ do: z.literal('idle'), seconds: z.number() }),
  z.strictObject({ do: z.literal('relist') }),
  z.strictObject({ do: z.literal('claims'), count: z.number(), perSecond: z.number() }),
]);
export type ControllerCommand = z.infer<typeof ControllerCommand>;

const Traffic = z.object({
  watchBytes: z.number(),
  /** By type: ADDED, MODIFIED, DELETED, BOOKMARK. */
  events: z.record(z.string(), z.number()),
  listBytes: z.number(),
  /** By verb, without the watch. */
  requests: z.record(z.string(), z.number()),
});
export type Traffic = z.infer<typeof Traffic>;

export const Filled = z.object({ seconds: z.number(), baseRssMiB: z.number(), rssPeakMiB: z.number(), traffic: Traffic });
export const Idle = z.object({ rssMiB: z.number(), heapMiB: z.number(), cpuPercent: z.number(), seconds: z.number(), traffic: Traffic });
export const Relist = z.object({ ms: z.number(), bytes: z.number(), requests: z.number() });
/** The progress that a controller reports every few seconds while it works. */
const Progress = z.object({ progress: z.string() });
/** Sent instead of an answer. */
const Failure = z.object({ failure: z.string() });
export const Claims = z.object({
  claimMs: z.array(z.number()),
  firstByteMs: z.array(z.number()),
  conflicts: z.number(),
  /** p99 of how long the process was not listening, in ms. */
  stallMs: z.number(),
  cpuPercent: z.number(),
  traffic: Traffic,
});

/** A process did not finish its work. */
export class Unfinished extends Error {}

/** A process in the network of the cluster, asked line by line. */
export class ScaleProcess {
  /** The progress that the process reported last; '' once it has answered. */
  progress = '';
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  constructor(enter: readonly string[], program: 'scale-controller-main' | 'scale-supervisors-main', task: ScalePlace | ControllerTask) {
    const file = fileURLToPath(new URL(`./${program}.js`, import.meta.url));
    const [command, ...args] = [...enter, process.execPath, '--expose-gc', file, JSON.stringify(task)];
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    if (!this.child.stdout) throw new Error('the child has no stdout');
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** @throws Unfinished with the progress */
  async line(): Promise<unknown> {
    for (;;) {
      const { value, done } = await this.lines.next();
      if (done) throw new Error('a process of the bench ended without an answer');
      const line: unknown = JSON.parse(value);
      const { data: word } = Progress.safeParse(line);
      this.progress = word?.progress ?? '';
      const { data: failure } = Failure.safeParse(line);
      if (failure) throw new Unfinished(failure.failure);
      if (!word) return line;
    }
  }

  async ask<T>(command: ControllerCommand, answer: z.ZodType<T>): Promise<T> {
    this.child.stdin?.write(`${JSON.stringify(command)}\n`);
    return answer.parse(await this.line());
  }

  /** Kills the process like a crash. Its pods stay as they are. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
  }
}
