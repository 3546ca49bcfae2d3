import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text as consumed } from 'node:stream/consumers';
import { expect, onTestFinished } from 'vitest';
import type { MemoryPlace } from '../src/open-memory.js';

/** A process that runs `memory-process.ts`. It ends with the test. */
export interface Started {
  readonly lines: string[];
  /** Resolves once the process has printed this many lines or has ended. */
  printed(count: number): Promise<void>;
  kill(): Promise<void>;
  /** Fails with the process's stderr if its exit code isn't 0. */
  ended(): Promise<void>;
}

const file = (name: string) => new URL(name, import.meta.url).pathname;

/** Runs a TypeScript file of this folder without building it. `exit` resolves with its exit code or signal, and its stderr. */
export function sourceProcess(name: string, ...args: string[]) {
  const flags = ['--conditions=@etude/source', '--disable-warning=ExperimentalWarning', '--import', file('./source-hooks.mjs')];
  const child = spawn(process.execPath, [...flags, file(name), ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = once(child, 'close') as Promise<[code: number | null, signal: string | null]>;
  const exit = Promise.all([closed, consumed(child.stderr)]).then(([[code, signal], stderr]) => ({ code, signal, stderr }));
  return { child, exit };
}

export function startProcess(role: string, place: MemoryPlace, ...args: string[]): Started {
  const { child, exit } = sourceProcess('./memory-process.ts', role, JSON.stringify(place), ...args);
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => lines.push(line));
  return {
    lines,
    async printed(count) {
      while (lines.length < count && child.exitCode === null) await Promise.race([once(reader, 'line'), exit]);
    },
    async kill() {
      child.kill('SIGKILL');
      expect((await exit).stderr).toBe('');
    },
    async ended() {
      const { code, stderr } = await exit;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    },
  };
}
