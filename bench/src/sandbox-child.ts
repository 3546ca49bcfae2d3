import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { DriverChoice } from './sandbox-drivers.js';

/** The address of a supervisor, for a race that uses no driver. */
export const Endpoint = z.strictObject({ ip: z.string(), port: z.number(), supervisor: z.string(), token: z.string() });
export type Endpoint = z.infer<typeof Endpoint>;

export const ChildTask = z.discriminatedUnion('do', [
  /** Claims one sandbox, starts code that never ends, answers, and hangs until the child is killed. */
  z.strictObject({ do: z.literal('hold'), choice: DriverChoice }),
  /** Claims `count` sandboxes at once. Answers with the identity that each one prints. */
  z.strictObject({ do: z.literal('claim'), choice: DriverChoice, count: z.number() }),
  /** Binds `claimsEach` claims to each supervisor. Answers with the number of successful binds by supervisor. */
  z.strictObject({ do: z.literal('bind'), endpoints: z.array(Endpoint), claimsEach: z.number() }),
]);
export type ChildTask = z.infer<typeof ChildTask>;

const PROGRAM = fileURLToPath(new URL('./sandbox-child-main.js', import.meta.url));

/** A child process, which acts as another controller. */
export class Child {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  constructor(task: ChildTask) {
    this.child = spawn(process.execPath, [PROGRAM, JSON.stringify(task)], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (!this.child.stdout) throw new Error('the child has no stdout');
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  async line(): Promise<unknown> {
    const { value, done } = await this.lines.next();
    if (done) throw new Error('a child of the bench ended without an answer');
    return JSON.parse(value);
  }

  /** Lets the child begin. Each child waits for this, so that all begin together. */
  go(): void {
    this.child.stdin?.write('go\n');
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
  }
}
