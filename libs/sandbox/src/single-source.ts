import { type BubblewrapOptions, singleCommand } from './bubblewrap-command.js';
import { BubblewrapProcess, FIRST_FREE_FD } from './bubblewrap-process.js';
import type { SandboxShape } from './sandbox-driver.js';
import type { SandboxLink, SandboxSource } from './sandbox-link.js';

export interface SourceSettings extends BubblewrapOptions {
  readonly bundle: Buffer;
  /** The system call filter; null where there is none for this machine. */
  readonly seccomp: Buffer | null;
  readonly uid: number | undefined;
}

/** One bubblewrap, and one start of Python, per sandbox. For machines that allow no namespaces inside bubblewrap. */
export class SingleSource implements SandboxSource {
  private readonly live = new Set<BubblewrapProcess>();

  constructor(private readonly settings: SourceSettings) {}

  open(shape: SandboxShape): SandboxLink {
    const { bundle, uid, seccomp, missing } = this.settings;
    const filtered = seccomp !== null && !missing.has('syscalls');
    const process = new BubblewrapProcess({ command: singleCommand(this.settings, shape), bundle, pipes: filtered ? 1 : 0, uid });
    if (filtered) process.hand(FIRST_FREE_FD, seccomp);
    this.live.add(process);
    void process.gone.then(() => this.live.delete(process));
    return {
      get alive() {
        return process.alive;
      },
      gone: process.gone,
      send: (frame) => process.channel.send(frame),
      receive: () => process.channel.receive(),
      complaint: () => process.complaint(),
      destroy: () => process.destroy(),
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.live].map((process) => process.destroy()));
  }
}
