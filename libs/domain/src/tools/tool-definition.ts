import type { ProceduralMemorySettings, SkillDependency } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import type { SkillReader } from '../skills/life/find-skill.js';
import type { LoadedFunction } from '../skills/proof/bundle-code.js';
import type { SkillCall as CallOfSkill, SkillUse } from '../skills/proof/use-skill.js';
import type { Skill } from '@etude/contracts/memory';
import type { FoundSkill, SearchQuery } from '../ports/memory.js';

export interface ToolContext {
  readonly tenant: string;
  readonly agent: string;
  readonly user: string | null;
  /** The id of the tool session, which keeps todos and loaded functions. */
  readonly session: string;
  /** Whether the caller's JWT is bound to this user. */
  readonly isBound?: boolean;
  /** Unique per call. A retry has the same id, so that its effects happen only once. */
  readonly callId: string;
  /** Name of the API key that made the call. Histories show it. */
  readonly by: string;
  readonly settings: ProceduralMemorySettings;
}

/** A tool's answer. A failure may still have a `result`, such as the output of code that failed. */
export type ToolOutcome<R = Readonly<Record<string, unknown>>> =
  | { readonly success: true; readonly result: R }
  | { readonly success: false; readonly error: string; readonly result?: Partial<R> };

/**
 * A tool, in the form that MCP defines.
 *
 * `call` returns a failure that names the wrong arguments, if there are any. It may throw an EtudeError, which `ToolRegistry` turns into a
 * failure if the fault is the agent's or the caller's.
 */
export interface ToolDefinition {
  readonly name: string;
  readonly title: string;
  /** The description for a model. Its advice depends on the agent's settings. */
  describe(settings: ProceduralMemorySettings): string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** JSON Schema of `result`. */
  readonly outputSchema: Readonly<Record<string, unknown>>;
  readonly readOnly: boolean;
  /** Whether an equal second call changes nothing more. */
  readonly idempotent: boolean;
  /** Whether others can change the answer, as in a world with several agents. Then a rollout makes equal calls again. */
  readonly volatile?: boolean;
  call(args: unknown, context: ToolContext, signal: AbortSignal): Promise<ToolOutcome>;
}

interface ToolSpec<I extends z.ZodObject, O extends z.ZodObject> extends Pick<
  ToolDefinition,
  'name' | 'title' | 'readOnly' | 'idempotent' | 'volatile'
> {
  readonly description: string | ((settings: ProceduralMemorySettings) => string);
  readonly input: I;
  /** The schema of results, for success and failure. A field that only one of the two has is optional. */
  readonly output: O;
  /** Agents whose procedural memory is off can't use this tool. */
  readonly needsSkills?: true;
  run(args: z.output<I>, context: ToolContext, signal: AbortSignal): Promise<ToolOutcome<z.input<O>>>;
}

/** Makes a tool. Its two zod schemas are published as JSON Schema. Arguments and results are checked against these schemas. */
export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(spec: ToolSpec<I, O>): ToolDefinition {
  const { name, title, description, input, output, readOnly, idempotent, volatile } = spec;
  return {
    name,
    title,
    readOnly,
    idempotent,
    volatile,
    describe: (settings) => (typeof description === 'string' ? description : description(settings)),
    inputSchema: z.toJSONSchema(input, { io: 'input' }),
    outputSchema: z.toJSONSchema(output, { io: 'output' }),
    async call(args, context, signal) {
      const parsed = input.safeParse(args ?? {});
      if (!parsed.success) return { success: false, error: wrongArguments(parsed.error) };
      const off = spec.needsSkills ? skillsAreOff(context) : null;
      if (off !== null) return { success: false, error: off };
      const outcome = await spec.run(parsed.data, context, signal);
      if (outcome.success) return { success: true, result: output.parse(outcome.result) };
      const { error, result } = outcome;
      return result === undefined ? { success: false, error } : { success: false, error, result: output.partial().parse(result) };
    },
  };
}

/** An error if the agent's procedural memory is off, else null. */
export function skillsAreOff({ agent, settings }: Pick<ToolContext, 'agent' | 'settings'>): string | null {
  if (settings.enabled) return null;
  return (
    `Procedural memory is off for agent "${agent}", so skills are not searched, used or registered. A reviewer turns it on with ` +
    `"etude agents set ${agent} enabled=true" (UpdateAgent with procedural_memory_settings.enabled = true). execute_code works without it.`
  );
}

const SHOWN_MAX = 5;

function wrongArguments({ issues }: z.ZodError): string {
  const shown = issues.slice(0, SHOWN_MAX).map(({ path, message }) => `"${z.core.toDotPath(path) || 'arguments'}": ${message}.`);
  const more = issues.length > SHOWN_MAX ? ` And ${issues.length - SHOWN_MAX} more.` : '';
  return `Wrong arguments. ${shown.join(' ')}${more}`;
}

/** A call of a skill by a tool. It has no standard input. */
export type SkillCall = Pick<CallOfSkill, 'name' | 'parameters' | 'files' | 'useId'>;

export interface BundledCode {
  readonly code: string;
  /** The sandbox template with the packages of the functions. Absent means the default template. */
  readonly template?: string;
}

/** Finds, runs and loads skills. @throws EtudeError FAILED_PRECONDITION if a skill is inactive, not callable, or differs from its proof */
export interface ToolSkills {
  /** Active skills, best first. */
  search(
    reader: SkillReader,
    query: Required<Pick<SearchQuery, 'text' | 'limit' | 'similarityMin'>>,
  ): Promise<ReadonlyArray<Pick<FoundSkill, 'skill' | 'similarity'>>>;
  /** The active skill of that name with the narrowest owner, or null. */
  find(reader: SkillReader, name: string): Promise<Skill | null>;
  /** All active skills, sorted by name. Of several skills with one name, only the narrowest owner's. */
  list(reader: SkillReader): Promise<readonly Skill[]>;
  /** Counts each skill as offered. A lost count is not an error. */
  countOffers(skills: readonly Skill[]): Promise<void>;
  /** Runs a skill without a model. Returns null if the reader has no skill of that name in any status. */
  use(reader: SkillReader, call: SkillCall, signal: AbortSignal): Promise<SkillUse | null>;
  /** Finds functions to load, and pins their versions. @throws EtudeError NOT_FOUND, which names all missing functions */
  load(
    reader: SkillReader,
    names: readonly string[],
  ): Promise<{ readonly functions: ReadonlyArray<Omit<LoadedFunction, 'digest'>>; readonly pins: readonly SkillDependency[] }>;
  /** Puts the module `skills` in front of `code`. The module holds these functions and all skills that they call, in the pinned versions. */
  bundle(reader: SkillReader, pins: readonly SkillDependency[], code: string): Promise<BundledCode>;
}

export const TodoItem = z.strictObject({
  content: z.string().trim().min(1).max(500),
  status: z.enum(['pending', 'in_progress', 'completed']),
});
export type Todo = Readonly<z.output<typeof TodoItem>>;

export type SessionKey = SkillReader & Pick<ToolContext, 'session' | 'isBound'>;

export interface ToolSession {
  readonly todos: readonly Todo[];
  /** The loaded functions, each pinned to its version at the time of loading. */
  readonly loaded: readonly SkillDependency[];
}

/** Stores the state of tool sessions for days. Erasing an owner erases its sessions. @throws EtudeError QUEUE_UNAVAILABLE */
export interface ToolSessions {
  read(key: SessionKey): Promise<ToolSession>;
  putTodos(key: SessionKey, todos: readonly Todo[]): Promise<void>;
  /** Adds these functions, and replaces functions of the same names. Returns all loaded functions. */
  load(key: SessionKey, pins: readonly SkillDependency[]): Promise<readonly SkillDependency[]>;
}

export interface SkillWish {
  readonly name: string;
  /** Text of a caller, to be read as data and not as instructions. */
  readonly description: string;
  readonly example: Readonly<Record<string, unknown>> | null;
}

export interface SkillWishes {
  /** Requests a skill. Equal wishes get the same id. @throws EtudeError FAILED_PRECONDITION if the agent has too many open requests */
  request(reader: SkillReader, wish: SkillWish): Promise<string>;
}
