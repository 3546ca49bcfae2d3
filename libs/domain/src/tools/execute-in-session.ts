import { EtudeError } from '@etude/contracts/errors';
import type { Display, SandboxFile } from '@etude/contracts/sandbox';
import { TASK_FILES_MAX_BYTES } from '@etude/contracts/task';
import { cutMiddle } from '../evaluation/evaluator.js';
import { contentDigest } from '../skills/content-digest.js';
import { endingOf } from './execute-code.js';
import type { SessionKey, ToolSkills, ToolContext, ToolOutcome, ToolSessions } from './tool-definition.js';
import type { WorkCellOutcome, WorkSandbox } from '../ports/sandboxes.js';

/** The session id of calls that name no session. Nothing is kept between such calls. */
export const NO_SESSION = 'default';
const NAMELESS = { unavailable: 'the call names no session' };
const OUTPUT_MAX_CHARS = 20_000;
const NAMES_SHOWN = 20;
const TABLE = 'application/vnd.dataresource+json';

export interface SessionCodeDeps {
  readonly codeSessions: CodeSessions;
  readonly sessions: ToolSessions;
  readonly skills: ToolSkills;
}

interface SessionResult {
  results: unknown[];
  output: string;
  files: string[];
  sandbox: string;
  note?: string;
}

/**
 * Runs Python in the sandbox of the caller's session, with the session's loaded functions. If no sandbox can be opened, `unavailable` says why.
 *
 * @throws EtudeError as `CodeSessions`; FAILED_PRECONDITION if a file, or a package of a loaded function, is missing, or a function was withdrawn
 */
export async function executeInSession(
  { code, fileNames }: { readonly code: string; readonly fileNames: readonly string[] },
  context: ToolContext,
  { codeSessions, sessions, skills }: SessionCodeDeps,
  signal: AbortSignal,
): Promise<ToolOutcome<SessionResult> | { readonly unavailable: string }> {
  if (context.session === NO_SESSION) return NAMELESS;
  const { loaded } = await sessions.read(context);
  const names = loaded.map(({ name }) => name);
  const functions = loaded.length === 0 ? null : await skills.bundle(context, loaded, `from skills import ${names.join(', ')}\n`);
  const session = await codeSessions.open(context, functions?.template, signal);
  if ('unavailable' in session) return session;
  if (functions?.template !== undefined && functions.template !== session.template)
    throw refused(
      `${names.join(', ')} need packages that ${session.sandbox.name} doesn't have. Run the code with execute_code, or in another session that loads the functions first.`,
    );
  const executionId = `tool-${contentDigest([context.tenant, context.agent, context.user, context.callId]).slice(0, 40)}`;
  return session.inTurn(async () => {
    await requireFiles(fileNames, session, signal);
    if (functions !== null) {
      const brought = await runIn(session, `${executionId}-functions`, functions.code, signal);
      if (brought.exit !== 'ok') return ended(brought, session, [], `Loading the functions failed. ${endingOf(brought)}`);
    }
    const outcome = await runIn(session, executionId, code, signal);
    return ended(outcome, session, await filesOf(session, signal), outcome.exit === 'ok' ? '' : endingOf(outcome));
  }, signal);
}

const noTools = () => Promise.resolve({ success: false, error: 'there are no tools' } as const);

const runIn = ({ sandbox }: CodeSession, executionId: string, code: string, signal: AbortSignal) =>
  sandbox.run({ executionId, code, tools: [] }, noTools, signal);

const filesOf = async ({ sandbox }: CodeSession, signal: AbortSignal) => (await sandbox.list(signal)).map(({ path }) => path);

/** Reads files from the caller's session, for code that runs in another sandbox. @throws EtudeError FAILED_PRECONDITION if a file can't be read */
export async function readSessionFiles(
  fileNames: readonly string[],
  context: ToolContext,
  { codeSessions }: Pick<SessionCodeDeps, 'codeSessions'>,
  signal: AbortSignal,
): Promise<readonly SandboxFile[]> {
  if (fileNames.length === 0) return [];
  const session = context.session === NO_SESSION ? NAMELESS : await codeSessions.open(context, undefined, signal);
  if ('unavailable' in session) throw withoutFiles(fileNames, session.unavailable);
  return session.inTurn(async () => {
    await requireFiles(fileNames, session, signal);
    const files: SandboxFile[] = [];
    let left = TASK_FILES_MAX_BYTES;
    for (const path of new Set(fileNames.map(pathOf))) {
      const content = (await session.sandbox.read(path, left + 1, signal)) ?? new Uint8Array();
      left -= content.byteLength;
      if (left < 0) throw refused('The files in "file_names" are larger than 8 MiB together. Give the skill fewer or smaller files.');
      files.push({ path, contentBase64: Buffer.from(content).toString('base64') });
    }
    return files;
  }, signal);
}

export function withoutFiles(fileNames: readonly string[], why: string): EtudeError {
  const names = fileNames.join(', ').slice(0, 300);
  return refused(
    `"file_names" can't be made available (${names}): ${why}. Name a session that has these files, or put the data into the code.`,
  );
}

const refused = (message: string) => new EtudeError('FAILED_PRECONDITION', message);

const pathOf = (name: string) => name.replace(/^\.\//, '');

function ended(outcome: WorkCellOutcome, session: CodeSession, files: readonly string[], error: string): ToolOutcome<SessionResult> {
  const streams = [outcome.stdout, outcome.stderr].filter((text) => text !== '');
  const notes = [
    ...(session.isReplaced ? ["The session's previous sandbox has ended, with its variables and files."] : []),
    ...(outcome.stateLost ? ['The interpreter was restarted: variables are lost, files are kept.'] : []),
  ];
  const result = {
    results: outcome.displays.map(shownValue),
    output: streams.map((text) => cutMiddle(text, OUTPUT_MAX_CHARS)).join('\n'),
    files: [...files],
    sandbox: session.sandbox.name,
    ...(notes.length === 0 ? {} : { note: notes.join(' ') }),
  };
  return error === '' ? { success: true, result } : { success: false, error, result };
}

function shownValue(display: Display): unknown {
  const text = display['text/plain'];
  return display['application/json'] ?? display[TABLE] ?? (typeof text === 'string' ? literalOf(text) : null);
}

/** Checks that the session has these files. @throws EtudeError FAILED_PRECONDITION, which names the missing files */
async function requireFiles(names: readonly string[], session: CodeSession, signal: AbortSignal): Promise<void> {
  if (names.length === 0) return;
  const known = await filesOf(session, signal);
  const missing = names.filter((name) => !known.includes(pathOf(name)));
  if (missing.length === 0) return;
  const there = known.length === 0 ? 'no files' : `${known.slice(0, NAMES_SHOWN).join(', ')}${known.length > NAMES_SHOWN ? ', …' : ''}`;
  throw refused(
    `"file_names" names files that are not in this session: ${missing.slice(0, NAMES_SHOWN).join(', ')}. The session has ${there}. ` +
      `Upload files with UploadFile of etude.v1.Sandboxes (etude sandbox upload ${session.sandbox.name} FILE), or write them in code.`,
  );
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/;
const TEXT = /^(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)")$/;

/** The value of a `repr` that is a boolean, a number, or a string with JSON's escapes. Any other `repr` is returned unchanged. */
export function literalOf(repr: string): unknown {
  if (repr === 'True' || repr === 'False') return repr === 'True';
  if (NUMBER.test(repr)) return Number.isSafeInteger(Number(repr)) || /[.e]/.test(repr) ? Number(repr) : repr;
  const [whole, single, double] = TEXT.exec(repr) ?? [];
  if (whole === undefined) return repr;
  try {
    const text = JSON.parse(`"${(single ?? double ?? '').replaceAll("\\'", "'").replaceAll('"', '\\"')}"`) as string;
    return text.isWellFormed() ? text : repr;
  } catch {
    return repr;
  }
}

/** A sandbox that keeps variables and files between calls. */
export interface CodeSession {
  readonly sandbox: Pick<WorkSandbox, 'name' | 'run' | 'list' | 'read'>;
  /** Name of the sandbox's template, as in `ExecutionRequest`. */
  readonly template: string;
  /** Whether this sandbox replaces an earlier one of the session, whose contents are lost. */
  readonly isReplaced: boolean;
  /**
   * Runs the work of concurrent calls one after another, in the order in which they came.
   *
   * @throws EtudeError FAILED_PRECONDITION if the sandbox was lost; the signal's reason if it aborts before the call's turn
   */
  inTurn<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** Opens sandboxes for tool sessions. A sandbox ends by itself some time after its last call. */
export interface CodeSessions {
  /**
   * Returns the session's sandbox, or opens a sandbox from `template`. Returns `unavailable` with the reason if none can be opened.
   *
   * @param key `session` may also be the id of an open sandbox of the tenant. Then that sandbox is used and assigned to the key's agent and user. The
   *   time at which it ends stays the same
   * @throws EtudeError FAILED_PRECONDITION if that sandbox has ended or belongs to another agent or user; SANDBOX_UNAVAILABLE
   */
  open(key: SessionKey, template: string | undefined, signal: AbortSignal): Promise<CodeSession | { readonly unavailable: string }>;
}
