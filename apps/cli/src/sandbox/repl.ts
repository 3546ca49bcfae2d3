import { createInterface, type Interface } from 'node:readline';
import { Language } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { callSettings } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import { EXIT } from '../errors.js';
import { showExecution } from './execution.js';

/** Whether a line opens a block. An empty line ends the block, as in Python's own prompt. */
const opensBlock = (line: string) => /(:|\\)\s*(#.*)?$/.test(line) || line.startsWith('@');

/** Collects lines into cells: one line, or a block up to its empty line. */
export class CellReader {
  #lines: string[] = [];

  get pending(): boolean {
    return this.#lines.length > 0;
  }

  /** Adds a line. Returns the cell if this line completes it, else null. */
  take(line: string): string | null {
    const within = this.pending;
    if (line.trim() === '' && !within) return null;
    this.#lines.push(line);
    return (within ? line.trim() !== '' : opensBlock(line)) ? null : this.clear();
  }

  /** Returns the lines collected so far, and forgets them. */
  clear(): string {
    return this.#lines.splice(0).join('\n');
  }
}

async function runCell(cli: Cli, gateway: Gateway, name: string, cell: string, cancel: AbortSignal): Promise<void> {
  const isShell = cell.startsWith('!');
  const code = isShell ? { language: Language.SHELL, code: cell.slice(1) } : { language: Language.PYTHON, code: cell };
  await showExecution(cli, gateway, { name, ...code }, { cancel });
}

async function loop(cli: Cli, gateway: Gateway, name: string, lines: Interface): Promise<void> {
  const reader = new CellReader();
  let running: AbortController | null = null;
  let closed = false;
  lines.once('close', () => (closed = true));
  const prompt = () => {
    lines.setPrompt(reader.pending ? '... ' : '>>> ');
    if (!closed) lines.prompt();
  };
  lines.on('SIGINT', () => {
    if (running) return running.abort();
    reader.clear();
    prompt();
  });
  prompt();
  for await (const line of lines) {
    const cell = reader.take(line);
    if (cell !== null) {
      running = new AbortController();
      await runCell(cli, gateway, name, cell, AbortSignal.any([running.signal, cli.signal]));
      running = null;
    }
    cli.signal.throwIfAborted();
    prompt();
  }
  if (reader.pending) await runCell(cli, gateway, name, reader.clear(), cli.signal);
}

/** `sandbox repl`: runs Python cells, and shell commands with a leading `!`, until Ctrl-D. The sandbox stays open. */
export function repl(cli: Cli, name: string): Promise<number> {
  return withGateway(cli, async (gateway) => {
    await gateway.sandboxes.getSandbox({ name }, callSettings(cli));
    const terminal = process.stdin.isTTY;
    if (terminal) cli.out.note('Python cells; !COMMAND runs in the shell; an empty line ends a block; Ctrl-C cancels, Ctrl-D leaves');
    const lines = createInterface({ input: process.stdin, ...(terminal ? { output: process.stderr } : {}), terminal, prompt: '' });
    try {
      await loop(cli, gateway, name, lines);
      return EXIT.ok;
    } finally {
      lines.close();
    }
  });
}
