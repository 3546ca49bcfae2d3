import { EtudeError } from '@etude/contracts/errors';
import type { SupervisorFrame } from './frame-channel.js';
import type { SandboxShape } from './sandbox-driver.js';

/** One sandbox as its driver holds it. */
export interface SandboxLink {
  readonly alive: boolean;
  /** Resolves when no process of the sandbox exists any more. */
  readonly gone: Promise<void>;
  send(frame: SupervisorFrame): void;
  /** The next frame; null once the sandbox is gone. One reader at a time. */
  receive(): Promise<SupervisorFrame | null>;
  /** What was said when it could not be started. */
  complaint(): string;
  /** Kills process 1 of the sandbox, and with it all others. */
  destroy(): Promise<void>;
}

/** Where a driver's sandboxes come from. */
export interface SandboxSource {
  open(shape: SandboxShape): SandboxLink;
  /** Destroys everything that was opened. */
  close(): Promise<void>;
}

/** Resolves when the supervisor is there. @throws EtudeError SANDBOX_UNAVAILABLE with what bubblewrap said */
export async function expectHello(link: SandboxLink): Promise<void> {
  const frame = await link.receive();
  if (frame?.type !== 'hello')
    throw new EtudeError('SANDBOX_UNAVAILABLE', `a sandbox could not be started: ${link.complaint() || 'it ended at once'}`);
}
