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
  /** Todos and loaded functions are kept per session. */
  readonly session: string;
  /** Whether the caller's JWT is bound to this user. */
  readonly isBound?: boolean;
  /** Unique per call. A repeated call has the same one, and its effects happen once. */
  readonly callId: string;
  /** Name of the API key that made the call, for histories. */
  readonly by: string;
  readonly settings: ProceduralMemorySettings;
}

/** A tool's answer. A failure may still have a `result`, such as the output of code that failed. */
export type ToolOutcome<R = Readonly<Record<string, unknown>>> =
  | { readonly success: true; readonly result: R }
  | { readonly success: false; readonly error: string; readonly result?: Partial<R> };

/**
 * Something that an agent can do, in the form that MCP defines.
 *
 * `call` checks its arguments; wrong ones give a failure that names them. An EtudeError of the caller is a failure too, as `ToolRegistry`
 * says.
 */
export interface ToolDefinition {
  readonly name: string;
  readonly title: string;
  /** Description for a model. The advice in it depends on the agent's settings. */
  describe(settings: ProceduralMemorySettings): string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** JSON Schema of `result`. */
  readonly outputSchema: Readonly<Record<string, unknown>>;
  readonly readOnly: boolean;
  /** Repeating the same call changes nothing more. */
  readonly idempotent: boolean;
  /** The answer can change although this agent changed nothing, as when others move in its world. A rollout then repeats equal calls. */
  readonly volatile?: boolean;
  call(args: unknown, context: ToolContext, signal: AbortSignal): Promise<ToolOutcome>;
}

export interface ToolSpec<I extends z.ZodObject, O extends z.ZodObject> extends Pick<
  ToolDefinition,
  'name' | 'title' | 'readOnly' | 'idempotent' | 'volatile'
> {
  readonly description: string | ((settings: ProceduralMemorySettings) => string);
  readonly input: I;
  /** Success and failure share it, so fields of only one of them are optional. */
  readonly output: O;
  /** Agents whose procedural memory is off can't use this tool. */
  readonly needsSkills?: true;
  run(args: z.output<I>, context: ToolContext, signal: AbortSignal): Promise<ToolOutcome<z.input<O>>>;
}

/** Makes a tool from two zod schemas, which are both published and checked. */
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

/** The error for an agent whose procedural memory is off, with the way to turn it on. null if it is on. */
export function skillsAreOff({ agent, settings }: Pick<ToolContext, 'agent' | 'settings'>): string | null {
  if (settings.enabled) return null;
  return (
    `Procedural memory is off for agent "${agent}", so skills are not searched, used or registered. A reviewer turns it on with ` +
    `"etude agents set ${agent} enabled=true" (UpdateAgent with procedural_memory_settings.enabled = true). execute_code works without it.`
  );
}

const SHOWN_MAX = 5;

/** Explains to the model which of a tool's arguments are wrong, by name and in zod's words. */
function wrongArguments({ issues }: z.ZodError): string {
  const shown = issues.slice(0, SHOWN_MAX).map(({ path, message }) => `"${z.core.toDotPath(path) || 'arguments'}": ${message}.`);
  const more = issues.length > SHOWN_MAX ? ` And ${issues.length - SHOWN_MAX} more.` : '';
  return `Wrong arguments. ${shown.join(' ')}${more}`;
}

/** A use of a skill by a tool, which gives a program no standard input. */
export type SkillCall = Pick<CallOfSkill, 'name' | 'parameters' | 'files' | 'useId'>;

export interface BundledCode {
  readonly code: string;
  /** The sandbox template that has the packages of the functions. Absent: the default template. */
  readonly template?: string;
}

/**
 * The skills of one reader, for tools: found, run and loaded.
 *
 * @throws EtudeError FAILED_PRECONDITION if a skill is not active, can't be called, or its code differs from the proven one
 */
export interface ToolSkills {
  /** Active skills, best first. */
  search(
    reader: SkillReader,
    query: Required<Pick<SearchQuery, 'text' | 'limit' | 'similarityMin'>>,
  ): Promise<ReadonlyArray<Pick<FoundSkill, 'skill' | 'similarity'>>>;
  /** The active skill of that name with the narrowest owner; null if there is none. */
  find(reader: SkillReader, name: string): Promise<Skill | null>;
  /** All active skills, by name. Of equal names only the one with the narrowest owner. */
  list(reader: SkillReader): Promise<readonly Skill[]>;
  /** Counts each skill as offered. Losing a count is not an error. */
  countOffers(skills: readonly Skill[]): Promise<void>;
  /** Runs a skill without a model. null if the reader has no skill of that name in any status. */
  use(reader: SkillReader, call: SkillCall, signal: AbortSignal): Promise<SkillUse | null>;
  /** Finds functions to load, and pins their versions. @throws EtudeError NOT_FOUND naming all that are missing */
  load(
    reader: SkillReader,
    names: readonly string[],
  ): Promise<{ readonly functions: ReadonlyArray<Omit<LoadedFunction, 'digest'>>; readonly pins: readonly SkillDependency[] }>;
  /** Puts the module `skills` in front of `code`, with these functions and all they call, exactly as pinned. */
  bundle(reader: SkillReader, pins: readonly SkillDependency[], code: string): Promise<BundledCode>;
}

export const TodoItem = z.strictObject({
  content: z.string().trim().min(1).max(500),
  status: z.enum(['pending', 'in_progress', 'completed']),
});
export type Todo = Readonly<z.output<typeof TodoItem>>;

export type SessionKey = SkillReader & Pick<ToolContext, 'session' | 'isBound'>;

/** What is stored for a tool session between calls. */
export interface ToolSession {
  readonly todos: readonly Todo[];
  /** Loaded functions by name, pinned to the versions at the time of loading. */
  readonly loaded: readonly SkillDependency[];
}

/** Sessions are kept for days, and erased with their owner. @throws EtudeError QUEUE_UNAVAILABLE */
export interface ToolSessions {
  read(key: SessionKey): Promise<ToolSession>;
  /** Replaces the whole plan. */
  putTodos(key: SessionKey, todos: readonly Todo[]): Promise<void>;
  /** Adds these functions, and replaces functions of the same names. Returns all loaded functions. */
  load(key: SessionKey, pins: readonly SkillDependency[]): Promise<readonly SkillDependency[]>;
}

export interface SkillWish {
  readonly name: string;
  /** Written by a caller: data, not instructions. */
  readonly description: string;
  readonly example: Readonly<Record<string, unknown>> | null;
}

export interface SkillWishes {
  /** Returns the request's id, the same one for the same wish. @throws EtudeError FAILED_PRECONDITION if the agent has too many open requests */
  request(reader: SkillReader, wish: SkillWish): Promise<string>;
}
