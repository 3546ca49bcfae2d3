import { hash } from 'node:crypto';
import { errorCode } from '@etude/contracts/errors';
import type { JournalEntry } from '../ports/journal.js';
import { SandboxLost, type WorkSandbox } from '../ports/sandboxes.js';
import { contentDigest } from '../skills/content-digest.js';
import { FILE_BYTES_MAX } from '../tools/workspace-tools.js';
import type { RolloutContext } from './rollout-context.js';

const LISTED_MAX = 1_000;
const DIGEST_CHARS = 16;

/** The name of the sandbox that a rollout opened last, from the rollout's journal. null if it opened no sandbox. */
export function lastSandboxIn(entries: readonly JournalEntry[]): string | null {
  const opened = entries.findLast(({ key }) => key.endsWith('.open'))?.value as Filled | undefined;
  return opened?.name ?? null;
}

/** The journal's note that the task's files were written into a sandbox. `number` counts the rollout's sandboxes from 0. */
interface Filled {
  readonly number: number;
  readonly name: string;
}

/** A rollout's sandbox. It is opened when it is first used, gets the task's files once, and is replaced if it is lost. */
export class RolloutSandbox {
  #sandbox: Promise<WorkSandbox> | null = null;
  #losses = 0;
  #filled: Filled | undefined;

  constructor(private readonly context: RolloutContext) {}

  /** The open sandbox, for tools. @throws SandboxLost if no step has opened one */
  opened = (): Promise<WorkSandbox> => this.#sandbox ?? Promise.reject(new SandboxLost('no step has opened it'));

  /** @throws SandboxLost once for each sandbox that has ended */
  async open(key: string): Promise<WorkSandbox> {
    const { context } = this;
    const { spec, tenant, rolloutId, signal, deps, steps } = context;
    const number = this.#losses;
    const request = { tenant, requestId: `${rolloutId}.w${number}`, template: undefined, limits: spec.limits.sandbox };
    this.#sandbox ??= deps.workSandboxes.open(request, signal);
    const sandbox = await this.#sandbox.catch((error: unknown) => {
      this.#sandbox = null;
      throw error;
    });
    if (this.#filled?.number === number) {
      // A controller forgets a sandbox some time after the sandbox ended. Then the same request opens an empty sandbox.
      if (sandbox.name === this.#filled.name) return sandbox;
      throw new SandboxLost('it ended while the task rested');
    }
    // The task's files are written once for each sandbox, when it is opened. A later worker must not undo the agent's changes.
    this.#filled = await steps.run<Filled>(`${key}.open`, 'sandbox', async () => {
      for (const { path, contentBase64 } of spec.files) await sandbox.write(path, Buffer.from(contentBase64, 'base64'), signal);
      return {
        value: { number, name: sandbox.name },
        summary: `opened sandbox ${number + 1} with ${spec.files.length} files`,
        usage: { steps: 0 },
      };
    });
    return sandbox;
  }

  /** A digest of path, size and time of one file, or of all files. An equal stamp means that these files are unchanged. */
  async stamp(key: string, filePath: string | undefined): Promise<string> {
    const files = await (await this.open(key)).list(this.context.signal);
    const of = files.filter(({ path }) => filePath === undefined || path === filePath.replace(/^\.\//, ''));
    // The list may be cut. A cut list can't show that all files are unchanged, so each call gets a stamp of its own.
    if (files.length >= LISTED_MAX && of.length !== 1) return key;
    return contentDigest(of.map(({ path, sizeBytes, modifiedAt }) => [path, sizeBytes, modifiedAt]));
  }

  /** The first `bytesMax` bytes of a file. null if there is no such file, or if the path is absolute or a folder. */
  async read(key: string, path: string, bytesMax: number): Promise<Uint8Array | null> {
    const sandbox = await this.open(key);
    return sandbox.read(path, bytesMax, this.context.signal).catch((error: unknown) => {
      if (errorCode(error) !== 'INVALID_ARGUMENT') throw error;
      return null;
    });
  }

  /** The first digits of the sha256 of the part of a file that `fs_read` can read. undefined if there is no such file. */
  async digest(key: string, path: string): Promise<string | undefined> {
    const bytes = await this.read(key, path, FILE_BYTES_MAX);
    return bytes === null ? undefined : hash('sha256', bytes, 'hex').slice(0, DIGEST_CHARS);
  }

  /** Reads from the journal whether an earlier worker wrote the task's files before this action. */
  noticeOpened(key: string): void {
    this.#filled = (this.context.steps.replay(`${key}.open`) as Filled | undefined) ?? this.#filled;
  }

  noticeLoss(): void {
    this.#losses += 1;
    this.#sandbox = null;
  }

  async close(): Promise<void> {
    const sandbox = this.#sandbox;
    // A failure is ignored, because the sandbox ends by itself some minutes later.
    await sandbox?.then((open) => open.close(AbortSignal.timeout(2_000))).catch(() => undefined);
  }
}
