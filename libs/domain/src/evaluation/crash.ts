import type { RunResult } from '@etude/contracts/sandbox';

export interface Crash {
  /** Name of the exception; null where the process was killed or exited by itself. */
  readonly type: string | null;
  readonly message: string;
  readonly line: number | null;
  /** One line that may be shown for a hidden case: of the case's data it has no more than code can say by where and how it fails. */
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
 * What Python says of how code is written. Code can raise these by itself, with any message: so only the words that are matched here are
 * told, and at most one name among them, where it stands in the code as a whole: put together of parts it could spell out anything.
 */
const ABOUT_THE_CODE: readonly RegExp[] = [
  /^name '(\w+)' is not defined/,
  /^cannot access (?:local|free) variable '(\w+)' where it is not associated with a value/,
  /^No module named '([\w.]+)'/,
  /^cannot import name '(\w+)'/,
  /^(?:invalid syntax|unexpected indent|expected an indented block|expected ':'|unmatched '[)\]}]'|'[([{]' was never closed)/,
  /^(?:unindent does not match any outer indentation level|inconsistent use of tabs and spaces in indentation)/,
  /^(?:unterminated (?:f-)?string literal|unterminated triple-quoted (?:f-)?string literal|invalid decimal literal)/,
  /^'(?:return|yield|await|break|continue)' outside (?:async )?(?:function|loop)/,
  /^cannot assign to (?:literal|function call|expression|comparison|attribute|subscript|True|False|None)\b/,
];

/**
 * What ended a run, from the sandbox's own report or else from the traceback on stderr.
 *
 * @param code that ran; without it the summary tells no line and no message
 */
export function crashOf(run: RunResult, code = ''): Crash {
  const reported = run.error ?? fromTraceback(run.stderr);
  if (run.exit === 'signal') return { type: null, message: '', line: null, summary: `killed by signal ${run.signal ?? '?'}` };
  if (!reported) return { type: null, message: '', line: null, summary: `exited with status ${run.exitCode ?? '?'}` };
  return { ...reported, summary: publicSummary(reported, code) };
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

function publicSummary({ type, message, line }: NonNullable<RunResult['error']>, code: string): string {
  const name = BUILT_IN.has(type) ? type : 'an exception of its own';
  const where = isLineOf(line, code) ? ` at line ${line}` : '';
  const told = tellable(message, code);
  return `raised ${name}${where}${told === null ? '' : ` (${told})`}`;
}

/** Code can print a traceback of its own, and compile other code under its own name: such a line is any number that it likes. */
const isLineOf = (line: number | null, code: string) => line !== null && code !== '' && line >= 1 && line <= code.split('\n').length;

function tellable(message: string, code: string): string | null {
  for (const pattern of ABOUT_THE_CODE) {
    const [told, name] = pattern.exec(message) ?? [];
    if (told !== undefined) return name === undefined || standsIn(code, name) ? told : null;
  }
  return null;
}

const standsIn = (code: string, name: string) => new RegExp(`(?<![\\w.])${name.replaceAll('.', '\\.')}(?!\\w)`).test(code);
