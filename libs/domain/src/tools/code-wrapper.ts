import { Json } from '@etude/contracts/json';
import { type RunResult, SHOWN_VALUE, type SandboxRun } from '@etude/contracts/sandbox';
import { z } from 'zod';
import { LIMIT_VERDICTS } from '../evaluation/judge.js';
import { pythonText } from '../python-files.js';
import { exactValue } from '../skills/proof/plain-value.js';

const ENTRY_POINT = '__etude_execute__';

/**
 * Runs source as `__main__` and returns the value of its last expression, as a notebook does. The source can call loaded functions by name.
 * The source can also fake this answer, so never take it for a verdict.
 */
export const WRAPPER = pythonText('execute_source');

const Answer = z.union([
  z.strictObject({ error: z.strictObject({ type: z.string(), message: z.string(), line: z.number().int().nullable() }) }),
  z.strictObject({ value: Json.optional() }),
]);

/** @param ground Python that defines the wrapper, preceded by the module `skills` where functions are loaded */
export function wrappedRun(ground: string, source: string, loaded: readonly string[]): SandboxRun {
  return { kind: 'call', code: ground, entryPoint: ENTRY_POINT, args: [source, [...loaded]], kwargs: {}, ...SHOWN_VALUE };
}

export interface ReadRun {
  /** Such as "ZeroDivisionError: division by zero (line 3)". Empty if the code ran to its end. */
  readonly error: string;
  /** In the form of `RunResult.value`, after `exactValue`. Absent if the last statement is no expression, or its value is None. */
  readonly value?: unknown;
}

export function readWrappedRun(run: RunResult): ReadRun {
  const answer = Answer.safeParse(run.value);
  if (answer.success && 'error' in answer.data) return { error: sentenceOf(answer.data.error) };
  if (run.exit === 'ok' && answer.success && !('error' in answer.data))
    return { error: '', ...(answer.data.value === undefined ? {} : { value: exactValue(answer.data.value) }) };
  return { error: endingOf(run) };
}

/** Why the code did not run to its end, for a model. */
export function endingOf({ exit, exitCode, signal, error }: Pick<RunResult, 'exit' | 'exitCode' | 'signal' | 'error'>): string {
  if (error !== undefined) return sentenceOf(error);
  const how = exitCode === null ? (signal === null ? '' : ` (signal ${signal})`) : ` (exit code ${exitCode})`;
  const ending = exit === 'ok' ? 'ended before its last statement' : (LIMIT_VERDICTS[exit]?.[1] ?? `ended with "${exit}"`);
  return `The code ${ending}${how}`;
}

function sentenceOf({ type, message, line }: { type: string; message: string; line: number | null }): string {
  return `${type}${message === '' ? '' : `: ${message}`}${line === null ? '' : ` (line ${line})`}`;
}
