import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
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

export function startProcess(role: string, place: MemoryPlace, ...args: string[]): Started {
  const flags = ['--conditions=@etude/source', '--disable-warning=ExperimentalWarning', '--import', file('./source-hooks.mjs')];
  const all = [...flags, file('./memory-process.ts'), role, JSON.stringify(place), ...args];
  const child = spawn(process.execPath, all, { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => lines.push(line));
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const exit = once(child, 'close');
  return {
    lines,
    async printed(count) {
      while (lines.length < count && child.exitCode === null) await Promise.race([once(reader, 'line'), exit]);
    },
    async kill() {
      child.kill('SIGKILL');
      await exit;
      expect(stderr).toBe('');
    },
    async ended() {
      const [code] = await exit;
      expect({ code: code as number, stderr }).toEqual({ code: 0, stderr: '' });
    },
  };
}
