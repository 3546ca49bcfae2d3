import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** A process that runs `store-process.ts`. */
export interface StoreProcess {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly lines: string[];
  readonly exit: Promise<{ code: number | null; stderr: string }>;
  /** Resolves once so many lines were printed, or the process ended. */
  printed(count: number): Promise<void>;
}

const file = (name: string) => new URL(name, import.meta.url).pathname;

/** The caller ends it. */
export function startStoreProcess(...args: string[]): StoreProcess {
  const flags = ['--conditions=@etude/source', '--disable-warning=ExperimentalWarning', '--import', file('./source-hooks.mjs')];
  const child = spawn(process.execPath, [...flags, file('./store-process.ts'), ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => lines.push(line));
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const exit = once(child, 'close').then(([code]) => ({ code: code as number | null, stderr }));
  const printed = async (count: number) => {
    while (lines.length < count && child.exitCode === null) await Promise.race([once(reader, 'line'), exit]);
  };
  return { child, lines, exit, printed };
}
