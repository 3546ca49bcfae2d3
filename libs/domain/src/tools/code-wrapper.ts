import { Json } from '@etude/contracts/json';
import { type RunResult, SHOWN_VALUE, type SandboxRun } from '@etude/contracts/sandbox';
import { z } from 'zod';
import { LIMIT_VERDICTS } from '../evaluation/judge.js';
import { pythonText } from '../python-files.js';
import { exactValue } from '../skills/proof/plain-value.js';

const ENTRY_POINT = '__etude_execute__';

/**
 * Runs source as `__main__` and answers the value of its last expression, as a notebook does. Loaded functions are there by their
 * names. What the source says about itself is its own: nothing here is a verdict.
 */
export const WRAPPER = pythonText('execute_source');

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
  const ending = exit === 'ok' ? 'ended before its last statement' : (LIMIT_VERDICTS[exit]?.[1] ?? `ended with "${exit}"`);
  return `The code ${ending}${how}`;
}

function sentenceOf({ type, message, line }: { type: string; message: string; line: number | null }): string {
  return `${type}${message === '' ? '' : `: ${message}`}${line === null ? '' : ` (line ${line})`}`;
}
