import type { RunResult } from '@etude/contracts/sandbox';

export interface Crash {
  /** Name of the exception; null if the process was killed or exited without one. */
  readonly type: string | null;
  readonly message: string;
  readonly line: number | null;
  /** One line that is safe to show for a hidden case: the name of a built-in exception and a line number, never a message. */
  readonly summary: string;
}

const BUILT_IN = new Set(
  [
    'ArithmeticError AssertionError AttributeError BrokenPipeError BufferError ConnectionError EOFError FileExistsError',
    'FileNotFoundError FloatingPointError ImportError IndentationError IndexError IsADirectoryError KeyError KeyboardInterrupt',
    'LookupError MemoryError ModuleNotFoundError NameError NotImplementedError OSError OverflowError PermissionError',
    'RecursionError ReferenceError RuntimeError StopIteration SyntaxError SystemError SystemExit TabError TimeoutError',
    'TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError ZeroDivisionError',
  ].flatMap((line) => line.split(' ')),
);

/**
 * How a run ended, from the sandbox's report or else from the traceback on stderr.
 *
 * @param code the code that ran. The summary names a line only if the code has it, since code can print a made-up traceback.
 */
export function crashOf(run: RunResult, code = ''): Crash {
  const nothing = { type: null, message: '', line: null };
  if (run.exit === 'signal') return { ...nothing, summary: `killed by signal ${run.signal ?? '?'}` };
  const reported = run.error ?? fromTraceback(run.stderr);
  if (!reported) return { ...nothing, summary: `exited with status ${run.exitCode ?? '?'}` };
  const { type, line } = reported;
  const isOfCode = line !== null && code !== '' && line >= 1 && line <= code.split('\n').length;
  const name = BUILT_IN.has(type) ? type : 'an exception of its own';
  return { ...reported, summary: `raised ${name}${isOfCode ? ` at line ${line}` : ''}` };
}

function fromTraceback(stderr: string): NonNullable<RunResult['error']> | null {
  const last = /^([A-Za-z_][\w.]*)(?:: (.*))?$/.exec(stderr.trimEnd().split('\n').at(-1) ?? '');
  if (!last || !/Traceback|File "/.test(stderr)) return null;
  const line = [...stderr.matchAll(/^ *File "[^"]*", line (\d+)/gm)].at(-1)?.[1];
  return { type: last[1]!.split('.').at(-1)!, message: last[2] ?? '', line: line ? Number(line) : null };
}
