import { createInterface, type Interface } from 'node:readline';
import { Language } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { callSettings } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import { EXIT } from '../errors.js';
import { showExecution } from './execution.js';

const PROMPT = '>>> ';
const MORE = '... ';

/** Whether a line opens a block that an empty line ends, as in Python's own. */
export const opensBlock = (line: string) => /(:|\\)\s*(#.*)?$/.test(line) || line.startsWith('@');

/** Collects lines into cells: one line, or a block up to its empty line. */
export class CellReader {
  #lines: string[] = [];

  get pending(): boolean {
    return this.#lines.length > 0;
  }

  /** The cell that this line completes; null where more has to come. */
  take(line: string): string | null {
    const within = this.pending;
    if (line.trim() === '' && !within) return null;
    this.#lines.push(line);
    if (within ? line.trim() !== '' : opensBlock(line)) return null;
    return this.clear();
  }

  /** What was collected. */
  clear(): string {
    const cell = this.#lines.join('\n');
    this.#lines = [];
    return cell;
  }
}

async function runCell(cli: Cli, gateway: Gateway, name: string, cell: string, cancel: AbortSignal): Promise<void> {
  const shell = cell.startsWith('!');
  const language = shell ? Language.SHELL : Language.PYTHON;
  await showExecution(cli, gateway, { name, language, code: shell ? cell.slice(1) : cell }, { cancel });
}

async function loop(cli: Cli, gateway: Gateway, name: string, lines: Interface): Promise<void> {
  const reader = new CellReader();
  let running: AbortController | null = null;
  let closed = false;
  lines.once('close', () => (closed = true));
  const prompt = () => {
    if (closed) return;
    lines.setPrompt(reader.pending ? MORE : PROMPT);
    lines.prompt();
  };
  lines.on('SIGINT', () => {
    if (running) return running.abort();
    reader.clear();
    cli.out.note('');
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

/** `sandbox repl`: cells of Python, and with a leading `!` shell commands, until Ctrl-D. The sandbox stays open. */
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
