import type { RunResult } from '@etude/contracts/sandbox';

export interface Crash {
  /** Name of the exception; null where the process was killed or exited by itself. */
  readonly type: string | null;
  readonly message: string;
  readonly line: number | null;
  /** One line that may be shown for a hidden case: nothing in it comes from the case's data. */
  readonly summary: string;
}

const BUILT_IN = new Set([
  'ArithmeticError',
  'AssertionError',
  'AttributeError',
  'BrokenPipeError',
  'BufferError',
  'ConnectionError',
  'EOFError',
  'FileExistsError',
  'FileNotFoundError',
  'FloatingPointError',
  'ImportError',
  'IndentationError',
  'IndexError',
  'IsADirectoryError',
  'KeyError',
  'KeyboardInterrupt',
  'LookupError',
  'MemoryError',
  'ModuleNotFoundError',
  'NameError',
  'NotImplementedError',
  'OSError',
  'OverflowError',
  'PermissionError',
  'RecursionError',
  'ReferenceError',
  'RuntimeError',
  'StopIteration',
  'SyntaxError',
  'SystemError',
  'SystemExit',
  'TabError',
  'TimeoutError',
  'TypeError',
  'UnboundLocalError',
  'UnicodeDecodeError',
  'UnicodeEncodeError',
  'UnicodeError',
  'ValueError',
  'ZeroDivisionError',
]);
/** Raised for how the code is written; a message without figures of its own says nothing about the data. */
const ABOUT_THE_CODE = new Set([
  'SyntaxError',
  'IndentationError',
  'TabError',
  'NameError',
  'UnboundLocalError',
  'ImportError',
  'ModuleNotFoundError',
]);

/** What ended a run, from the sandbox's own report or else from the traceback on stderr. */
export function crashOf(run: RunResult): Crash {
  const reported = run.error ?? fromTraceback(run.stderr);
  if (run.exit === 'signal') return { type: null, message: '', line: null, summary: `killed by signal ${run.signal ?? '?'}` };
  if (!reported) return { type: null, message: '', line: null, summary: `exited with status ${run.exitCode ?? '?'}` };
  return { ...reported, summary: publicSummary(reported) };
}

function fromTraceback(stderr: string): NonNullable<RunResult['error']> | null {
  const last = /^([A-Za-z_][\w.]*)(?:: (.*))?$/m.exec(lastLine(stderr));
  if (!last || !/Traceback|File "/.test(stderr)) return null;
  const line = [...stderr.matchAll(/^ *File "[^"]*", line (\d+)/gm)].at(-1)?.[1];
  return { type: last[1]!.split('.').at(-1)!, message: last[2] ?? '', line: line ? Number(line) : null };
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}

function publicSummary({ type, message, line }: NonNullable<RunResult['error']>): string {
  const name = BUILT_IN.has(type) ? type : 'an exception of its own';
  const where = line === null ? '' : ` at line ${line}`;
  const tellable = ABOUT_THE_CODE.has(type) && message.length <= 120 && !/\d/.test(message.replaceAll(/\bline \d+/g, ''));
  return `raised ${name}${where}${tellable ? ` (${message})` : ''}`;
}
