import { abortError } from '@etude/contracts/errors';
import { type CellToolAnswer, type CellToolCall, EMPTY_SCRATCHPAD, type Scratchpad } from '@etude/contracts/scratchpad';
import { RETRYABLE_EXITS } from '@etude/contracts/sandbox';
import type { Json } from '@etude/contracts/json';
import type { RecalledItem } from '@etude/contracts/memory';
import { z } from 'zod';
import { ExecutionMemory } from '../findings/execution-memory.js';
import { SandboxLost, type WorkCell, type WorkCellOutcome, type WorkSandbox } from '../ports/sandboxes.js';
import { contentDigest } from '../skills/content-digest.js';
import type { Todo, ToolContext } from '../tools/tool-definition.js';
import { cellText, isCall, offerOf, PYTHON, recordsIn, type StepCall, textOf, type ToolValue } from './step-calls.js';
import { importedSkills } from './imported-skills.js';
import { RolloutStop } from './durable-steps.js';
import type { RolloutContext } from './rollout-context.js';
import { RolloutSandbox } from './rollout-sandbox.js';
import { type EarlierFinding, earlierFinding } from './kept-findings.js';
import { FILE_BYTES_MAX, FILE_TOOLS } from '../tools/workspace-tools.js';
import { queryOf, type StepTools } from './step-tools.js';

/** The result of a step's action, as later prompts show it. */
export interface Observation {
  readonly call: StepCall;
  readonly query: string;
  readonly text: string;
  readonly success: boolean;
  /** Whether the call was not made because a finding of an earlier rollout is offered. If the model repeats the call, it is made. */
  readonly isOffer?: true;
}

interface CellValue {
  readonly text: string;
  readonly success: boolean;
  readonly scratchpad?: Scratchpad;
  readonly lost?: string;
}

const Code = z.object({ code: z.string().min(1).max(256_000) });
const ARGUMENTS = 'Wrong arguments. They must be one JSON object.';
const UNKNOWN = 'The call was interrupted, and it may have been made. Find out before you call again.';
const ASK = 'ask_caller';
/** Maximum number of characters in a rollout's journal for all answers of tools to code. */
const ANSWERED_CHARS_MAX = 32 * 1024 * 1024;
const ANSWERED_ENOUGH = 'Tools have answered as much as code may read in one task. Read files with open() instead.';

/** The state of one rollout. Every action is a journaled step. Only journaled values change the state, so that a later worker can rebuild it. */
export class Workbench {
  readonly findings = new ExecutionMemory();
  readonly recalled: RecalledItem[] = [];
  scratchpad: Scratchpad = EMPTY_SCRATCHPAD;
  /** Skills that `use_skill` ran, as "name@version". */
  readonly usedSkills = new Set<string>();
  readonly sandbox: RolloutSandbox;
  readonly #answered = new Map<string, ToolValue>();
  /** Identities of calls that were answered with a finding of an earlier rollout. */
  readonly #offered = new Set<string>();
  #answeredChars = 0;

  constructor(
    private readonly context: RolloutContext,
    private readonly tools: StepTools,
    /** Memories that the first prompt showed. Code can import the skills among them. */
    private readonly shown: readonly RecalledItem[],
  ) {
    this.sandbox = new RolloutSandbox(context);
  }

  /** Performs one action of step number `step`. @param key the action's key in the journal, such as "a1.s3.t1" */
  async act(key: string, step: number, call: StepCall): Promise<Observation> {
    if (call.tool === PYTHON) return this.#cell(key, step, call);
    const value = await this.#call(key, step, call, false);
    const { outcome, again, query, earlier } = value;
    const text = textOf(outcome);
    const told = again ? `(As before: nothing has changed since.)\n${text}` : text;
    return { call, query, text: told, success: outcome.success, ...(earlier && { isOffer: true }) };
  }

  /** The text of a workspace file, journaled because it is judged as the answer. null if the file is missing or larger than 1 MiB. */
  file(key: string, path: string): Promise<string | null> {
    this.sandbox.noticeOpened(key);
    return this.context.steps.run(key, 'sandbox', async () => {
      const bytes = await this.sandbox.read(key, path, FILE_BYTES_MAX + 1).catch((error: unknown) => {
        if (error instanceof SandboxLost) return null;
        throw error;
      });
      const value = bytes === null || bytes.length > FILE_BYTES_MAX ? null : new TextDecoder().decode(bytes);
      return { value, summary: value === null ? `there is no file ${path} of at most 1 MiB` : `the answer is the file ${path}` };
    });
  }

  async #cell(key: string, step: number, call: StepCall): Promise<Observation> {
    const code = Code.safeParse(call.args).data?.code;
    if (code === undefined) return { call, query: '', text: 'Wrong arguments. "code" must be the Python to run.', success: false };
    const { steps } = this.context;
    this.sandbox.noticeOpened(key);
    // If the cell is journaled, it isn't run again. Then the effects of its calls are taken from the journal.
    for (const value of steps.journaledUnder(key, `${key}.t`)) if (isCall(value)) this.#apply(step, value);
    const value = await steps.run<CellValue>(key, 'cell', async () => {
      const cell = await this.#run(key, step, code);
      const [first = ''] = cell.text.split('\n', 1);
      const { values = [], observations = [], failedApproaches: failed = [] } = cell.scratchpad ?? {};
      const kept = values.length + observations.length + failed.length;
      const counts =
        kept === 0 ? '' : ` · scratchpad ${values.length} values, ${observations.length} observations, ${failed.length} failures`;
      return { value: cell, summary: `${cell.success ? 'ran' : 'failed'}: ${first.slice(0, 160)}${counts}`, usage: { executions: 1 } };
    });
    if (value.scratchpad !== undefined) this.scratchpad = value.scratchpad;
    this.#noticeLoss(value);
    return { call, query: code, text: value.text, success: value.success };
  }

  async #run(key: string, step: number, code: string): Promise<CellValue> {
    const { context, scratchpad } = this;
    const { rolloutId } = context;
    const answer = (call: CellToolCall) => this.#fromCode(key, step, call);
    try {
      const sandbox = await this.sandbox.open(key);
      const cell = { executionId: `${rolloutId}.${key}`, code, tools: this.tools.forCells(), scratchpad };
      // A separate cell first loads the skills that the code imports.
      const imports = await importedSkills(context, [...this.shown, ...this.recalled], code);
      const loading = { ...cell, executionId: `${cell.executionId}.skills`, code: imports.load('pass') };
      const loaded = imports.used.length === 0 ? null : await this.#follow(sandbox, loading, answer);
      const outcome = loaded === null || loaded.exit === 'ok' ? await this.#follow(sandbox, cell, answer) : loaded;
      if (RETRYABLE_EXITS.has(outcome.exit)) return lost(outcome.error?.message ?? outcome.exit);
      const { scratchpad: state } = outcome;
      // The scratchpad may be large, so it is journaled only if it changed.
      const kept = state === undefined || contentDigest(state) === contentDigest(scratchpad) ? {} : { scratchpad: state };
      return { text: cellText(outcome), success: outcome.exit === 'ok', ...kept };
    } catch (error) {
      if (error instanceof SandboxLost) return lost(error.why);
      throw error;
    }
  }

  /** Runs a cell. If this worker shuts down, the cell goes on, and the next worker follows it. If the rollout ends, the cell is stopped. */
  async #follow(sandbox: WorkSandbox, cell: WorkCell, answer: (call: CellToolCall) => Promise<CellToolAnswer>): Promise<WorkCellOutcome> {
    const { signal } = this.context;
    const [stop, left] = [new AbortController(), Promise.withResolvers<never>()];
    const end = () => (signal.reason instanceof RolloutStop ? stop.abort(signal.reason) : left.reject(abortError(signal)));
    signal.addEventListener('abort', end, { once: true });
    try {
      signal.throwIfAborted();
      return await this.context.tracing.span('sandbox.cell', { values: { 'etude.execution': cell.executionId } }, async (span) => {
        span.setContent(() => ({ 'etude.code': cell.code }));
        const outcome = await Promise.race([sandbox.run(cell, answer, stop.signal), left.promise]);
        span.set({ 'etude.sandbox.exits': [outcome.exit] });
        return outcome;
      });
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  async #fromCode(cell: string, step: number, { number, tool, arguments: args }: CellToolCall): Promise<CellToolAnswer> {
    const { outcome } = await this.#call(`${cell}.t${number}`, step, { id: null, tool, args }, true);
    return outcome.success ? { success: true, result: outcome.result as Json } : { success: false, error: outcome.error };
  }

  async #call(key: string, step: number, call: StepCall, fromCode: boolean): Promise<ToolValue> {
    this.sandbox.noticeOpened(key);
    const value = await this.context.steps.run<ToolValue>(key, 'tool', async () => {
      const made = await this.#make(key, call, fromCode);
      const how = made.again ? ' again' : made.earlier ? ' from an earlier task' : '';
      const summary = `${made.tool}(${made.query.slice(0, 120)})${how}${made.outcome.success ? '' : ' failed'}`;
      return { value: made, summary, usage: fromCode ? { steps: 0 } : {} };
    });
    this.#apply(step, value);
    return value;
  }

  #apply(step: number, value: ToolValue): void {
    const { tool, query, identity, outcome, filePath, digest, earlier } = value;
    if (earlier !== undefined) return this.#applyOffer(value, earlier);
    if (outcome.success && this.tools.isStable(tool)) this.#answered.set(identity, value);
    if (tool === 'remember') this.#answered.clear();
    if (tool === 'write_todos' && outcome.success) this.tools.todos = (outcome.result as { todos: readonly Todo[] }).todos;
    // The answer of an outside server may have a field "records" with another meaning.
    if (!this.tools.isOutside(tool)) this.recalled.push(...recordsIn(outcome));
    const { skill, version } = (outcome.result ?? {}) as { skill?: string; version?: number };
    if (tool === 'use_skill' && skill !== undefined) this.usedSkills.add(`${skill}@${version}`);
    this.tools.noticeFound(tool, outcome);
    const text = textOf(outcome);
    this.#answeredChars += text.length;
    this.findings.extractFrom({
      tool,
      query,
      step,
      success: outcome.success,
      text,
      ...(filePath && { filePath }),
      ...(digest && { digest }),
    });
    this.#noticeLoss(value);
  }

  #applyOffer({ tool, query, identity }: ToolValue, { fact, item }: EarlierFinding): void {
    this.#offered.add(identity);
    this.recalled.push(item);
    this.findings.add({ tool, query, fact, step: 0, success: true });
  }

  /**
   * If an equal call was answered and nothing has changed since, that answer is returned. If an earlier rollout has read the same file,
   * the model is once offered the finding of that rollout instead. Code gets no such offer, because it needs the content.
   */
  async #make(key: string, { tool, args }: StepCall, fromCode: boolean): Promise<ToolValue> {
    const path = args?.['path'];
    const filePath = tool === 'fs_read' && typeof path === 'string' ? path : undefined;
    const named = { tool, query: queryOf(tool, args ?? {}), identity: contentDigest([tool, args ?? null]), ...(filePath && { filePath }) };
    if (args === undefined) return { ...named, outcome: { success: false, error: ARGUMENTS } };
    if (fromCode && tool === ASK)
      return { ...named, outcome: { success: false, error: `${ASK} can't be called from code. Call it as a tool.` } };
    if (fromCode && this.#answeredChars > ANSWERED_CHARS_MAX) return { ...named, outcome: { success: false, error: ANSWERED_ENOUGH } };
    try {
      const stamp = FILE_TOOLS.has(tool) ? { stamp: await this.sandbox.stamp(key, filePath) } : {};
      const known = this.#answered.get(named.identity);
      if (known !== undefined && this.findings.hasFindingFor(tool, named.query) && known.stamp === stamp.stamp)
        return { ...known, again: true };
      const digest = filePath && !this.context.spec.memory.off ? await this.sandbox.digest(key, filePath) : undefined;
      const read = { ...named, ...(digest && { digest }) };
      const earlier = fromCode || this.#offered.has(named.identity) ? null : await earlierFinding(this.context, read);
      if (earlier !== null) return { ...named, outcome: { success: true, result: offerOf(earlier) }, earlier };
      if (this.tools.isOutside(tool) && !(await this.#begins(key))) return { ...named, outcome: { success: false, error: UNKNOWN } };
      const outcome = await this.tools.call(tool, args, await this.#toolContext(key), this.context.signal);
      return { ...read, ...stamp, outcome };
    } catch (error) {
      if (!(error instanceof SandboxLost)) throw error;
      return { ...named, outcome: { success: false, error: lost(error.why).text }, lost: error.why };
    }
  }

  /** Journals the start of an outside call. Returns false if an earlier worker journaled it and died. Then the call may have been made already. */
  async #begins(key: string): Promise<boolean> {
    const { steps } = this.context;
    if (steps.replay(`${key}.begin`) !== undefined) return false;
    await steps.run(`${key}.begin`, 'tool', async () => ({ value: true, summary: 'calls an outside server', usage: { steps: 0 } }));
    return true;
  }

  async #toolContext(key: string): Promise<ToolContext> {
    const { rolloutId, scope, settings } = this.context;
    return { ...scope, session: rolloutId, callId: `${rolloutId}.${key}`, by: `rollout ${rolloutId}`, settings: await settings() };
  }

  #noticeLoss({ lost: why }: Pick<CellValue, 'lost'>): void {
    if (why === undefined) return;
    this.sandbox.noticeLoss();
    this.#answered.clear();
    this.findings.forget(({ tool }) => FILE_TOOLS.has(tool));
  }
}

function lost(why: string): CellValue & { readonly lost: string } {
  const text =
    `The sandbox was lost: ${why}. A new sandbox has the task's files again, and the values of the scratchpad that could be kept. ` +
    'All other variables, and the files that you wrote, are gone.';
  return { text, success: false, lost: why };
}
