import { type Display, RETRYABLE_EXITS } from '@etude/contracts/sandbox';
import { cutMiddle } from '../evaluation/evaluator.js';
import { contentDigest } from '../skills/content-digest.js';
import { endingOf } from './code-wrapper.js';
import type { CellOutcome, CodeSession, CodeSessions } from './code-sessions.js';
import type { ToolContext } from './tool-definition.js';
import type { SkillRunner, ToolSessions } from './tool-ports.js';

/** The session of calls that name none: nothing is kept for it. */
export const NO_SESSION = 'default';
const OUTPUT_MAX_CHARS = 20_000;
const NAMES_SHOWN = 20;
const TABLE = 'application/vnd.dataresource+json';

export interface SessionCodeDeps {
  readonly codeSessions: CodeSessions;
  readonly sessions: ToolSessions;
  readonly runner: SkillRunner;
}

export interface SessionCode {
  readonly code: string;
  readonly fileNames: readonly string[];
}

/** `ran`: in the session's sandbox. `refused`: nothing ran, for the caller's reasons. `unavailable`: the session has no sandbox. */
export type SessionExecution =
  | {
      readonly outcome: 'ran';
      /** Empty where the code ran to its end. */
      readonly error: string;
      readonly results: readonly unknown[];
      readonly output: string;
      readonly files: readonly string[];
      readonly sandbox: string;
      readonly note: string;
    }
  | { readonly outcome: 'refused'; readonly error: string }
  | { readonly outcome: 'unavailable'; readonly why: string };

/**
 * Runs Python in the sandbox of the caller's session, with its loaded functions in reach.
 *
 * @throws EtudeError as `CodeSessions`; FAILED_PRECONDITION where a loaded function was withdrawn
 */
export async function executeInSession(
  { code, fileNames }: SessionCode,
  context: ToolContext,
  { codeSessions, sessions, runner }: SessionCodeDeps,
  signal: AbortSignal,
): Promise<SessionExecution> {
  if (context.session === NO_SESSION) return { outcome: 'unavailable', why: 'the call names no session' };
  const { loaded } = await sessions.read(context);
  const names = loaded.map(({ name }) => name);
  const functions = loaded.length === 0 ? null : await runner.bundle(context, loaded, `from skills import ${names.join(', ')}\n`);
  const session = await codeSessions.open(context, functions?.template, signal);
  if ('unavailable' in session) return { outcome: 'unavailable', why: session.unavailable };
  if (functions?.template !== undefined && functions.template !== session.template)
    return refused(
      `${names.join(', ')} need packages that ${session.sandbox} was opened without. Run this with execute_code, or in another session that loads them first.`,
    );
  return session.inTurn(() => executeIn(session, { code, fileNames }, { context, functions: functions?.code ?? null }, signal), signal);
}

/** In its turn: files are those that the calls before have left. */
async function executeIn(
  session: CodeSession,
  { code, fileNames }: SessionCode,
  { context, functions }: { readonly context: ToolContext; readonly functions: string | null },
  signal: AbortSignal,
): Promise<SessionExecution> {
  const missing = await missingFiles(fileNames, session, signal);
  if (missing !== null) return refused(missing);
  const executionId = `tool-${contentDigest([context.tenant, context.agent, context.user, context.callId]).slice(0, 40)}`;
  if (functions !== null) {
    const brought = await session.run({ executionId: `${executionId}-functions`, code: functions }, signal);
    if (brought.exit !== 'ok') return ran(brought, session, [], `The loaded functions could not be brought in. ${endingOf(brought)}`);
  }
  const outcome = await session.run({ executionId, code }, signal);
  const isLost = RETRYABLE_EXITS.has(outcome.exit);
  const files = isLost ? [] : await session.files(signal);
  return ran(outcome, session, files, isLost ? lostWith(outcome) : outcome.exit === 'ok' ? '' : endingOf(outcome));
}

const refused = (error: string) => ({ outcome: 'refused', error }) as const;

const lostWith = ({ exit, error }: CellOutcome) =>
  `The session's sandbox was lost (${error?.message ?? exit}), with its names and files. The next call opens another.`;

function ran(outcome: CellOutcome, session: CodeSession, files: readonly string[], error: string): SessionExecution {
  const streams = [outcome.stdout, outcome.stderr].filter((text) => text !== '');
  const notes = [
    ...(session.isReplaced ? ['The sandbox that this session had before has ended, with its names and files.'] : []),
    ...(outcome.stateLost ? ['The interpreter was ended: names are gone, files stay.'] : []),
  ];
  return {
    outcome: 'ran',
    error,
    results: outcome.displays.map(shownValue),
    output: streams.map((text) => cutMiddle(text, OUTPUT_MAX_CHARS)).join('\n'),
    files,
    sandbox: session.sandbox,
    note: notes.join(' '),
  };
}

/** What is JSON as JSON; a table as its rows; anything else as it prints. */
function shownValue(display: Display): unknown {
  if (display['application/json'] !== undefined) return display['application/json'];
  if (display[TABLE] !== undefined) return display[TABLE];
  const text = display['text/plain'];
  return typeof text === 'string' ? literalOf(text) : null;
}

/** null where all of them are there. */
async function missingFiles(names: readonly string[], session: CodeSession, signal: AbortSignal): Promise<string | null> {
  if (names.length === 0) return null;
  const known = await session.files(signal);
  const isThere = async (path: string) => known.includes(path) || session.has(path, signal);
  const found = await Promise.all(names.map((name) => isThere(name.replace(/^\.\//, ''))));
  const missing = names.filter((_, i) => !found[i]);
  if (missing.length === 0) return null;
  const there = known.length === 0 ? 'no files' : `${known.slice(0, NAMES_SHOWN).join(', ')}${known.length > NAMES_SHOWN ? ', …' : ''}`;
  return (
    `"file_names" names what is not in this session: ${missing.slice(0, NAMES_SHOWN).join(', ')}. It has ${there}. ` +
    `Files are put in with UploadFile of etude.v1.Sandboxes (etude sandbox upload ${session.sandbox} FILE), or written by code.`
  );
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"' };
const ESCAPED = /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))/gs;
const TEXT = /^(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")$/s;
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/;

/** The value of a `repr` that is a text, a number or a truth value, as JSON and UTF-8 have them; of any other the `repr` itself. */
export function literalOf(repr: string): unknown {
  if (repr === 'True' || repr === 'False') return repr === 'True';
  if (NUMBER.test(repr)) {
    const value = Number(repr);
    return Number.isSafeInteger(value) || /[.e]/.test(repr) ? value : repr;
  }
  if (!TEXT.test(repr)) return repr;
  const text = repr.slice(1, -1).replace(ESCAPED, unescaped);
  return text.isWellFormed() ? text : repr;
}

function unescaped(whole: string, ...[x, u, U, one]: Array<string | undefined>): string {
  const hex = x ?? u ?? U;
  if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
  return ESCAPES[one ?? ''] ?? whole;
}
