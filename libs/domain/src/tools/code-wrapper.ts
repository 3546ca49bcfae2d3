import { Json } from '@etude/contracts/json';
import { type RunResult, SHOWN_VALUE, type SandboxRun } from '@etude/contracts/sandbox';
import { z } from 'zod';
import { exactValue } from '../skills/use/exact-text.js';

const ENTRY_POINT = '__etude_execute__';

/**
 * Runs source as `__main__` and answers the value of its last expression, as a notebook does. Loaded functions are there by their
 * names. What the source says about itself is its own: nothing here is a verdict.
 */
export const WRAPPER = String.raw`
def ${ENTRY_POINT}(source, loaded):
    import ast, importlib, linecache, sys, traceback, types
    name = "code.py"
    module = types.ModuleType("__main__")
    module.__file__ = name
    sys.modules["__main__"] = module
    scope = module.__dict__
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    def failed(error):
        trace, line = error.__traceback__, None
        while trace is not None and trace.tb_frame.f_code.co_filename != name:
            trace = trace.tb_next
        step = trace
        while step is not None:
            if step.tb_frame.f_code.co_filename == name:
                line = step.tb_lineno
            step = step.tb_next
        if isinstance(error, SyntaxError) and error.filename == name:
            line = error.lineno
        traceback.print_exception(type(error), error, trace)
        message = str(error)[:4000].encode("utf-8", "backslashreplace").decode("utf-8")
        return {"error": {"type": type(error).__name__, "message": message, "line": line}}
    try:
        if loaded:
            functions = importlib.import_module("skills")
            scope.update({one: getattr(functions, one) for one in loaded})
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec", dont_inherit=True), scope)
        if last is None:
            return {}
        value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), scope)
        return {} if value is None else {"value": value}
    except SystemExit as error:
        if error.code in (None, 0):
            return {}
        return failed(error)
    except Exception as error:
        return failed(error)
`;

const Answer = z.union([
  z.strictObject({ error: z.strictObject({ type: z.string(), message: z.string(), line: z.number().int().nullable() }) }),
  z.strictObject({ value: Json.optional() }),
]);

/** @param ground Python that defines the wrapper, with the module `skills` in front of it where functions are loaded */
export function wrappedRun(ground: string, source: string, loaded: readonly string[]): SandboxRun {
  return { kind: 'call', code: ground, entryPoint: ENTRY_POINT, args: [source, [...loaded]], kwargs: {}, ...SHOWN_VALUE };
}

export interface ReadRun {
  /** Empty where it ran to its end. "ZeroDivisionError: division by zero (line 3)". */
  readonly error: string;
  /** As `RunResult.value`, and as `exactValue`. Absent where the last statement is no expression, or gives None. */
  readonly value?: unknown;
}

export function readWrappedRun(run: RunResult): ReadRun {
  const answer = Answer.safeParse(run.value);
  if (answer.success && 'error' in answer.data) return { error: sentenceOf(answer.data.error) };
  if (run.exit === 'ok' && answer.success && !('error' in answer.data))
    return { error: '', ...(answer.data.value === undefined ? {} : { value: exactValue(answer.data.value) }) };
  return { error: endingOf(run) };
}

/** Why code did not run to its end, for a model. */
export function endingOf({ exit, exitCode, signal, error }: Pick<RunResult, 'exit' | 'exitCode' | 'signal' | 'error'>): string {
  if (error !== undefined) return sentenceOf(error);
  const how = exitCode === null ? (signal === null ? '' : ` (signal ${signal})`) : ` (exit code ${exitCode})`;
  return `${ENDINGS[exit] ?? `The code ended with "${exit}"`}${how}`;
}

const ENDINGS: Readonly<Record<string, string>> = {
  wall: 'The code took too long and was stopped',
  cpu: 'The code used too much CPU time and was stopped',
  oom: 'The code used too much memory and was stopped',
  output: 'The code printed too much and was stopped',
  ok: 'The code ended before its last statement',
};

function sentenceOf({ type, message, line }: { type: string; message: string; line: number | null }): string {
  return `${type}${message === '' ? '' : `: ${message}`}${line === null ? '' : ` (line ${line})`}`;
}
