import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { z } from 'zod';

export interface ToolContext {
  readonly tenant: string;
  readonly agent: string;
  readonly user: string | null;
  /** Todos and loaded functions are kept per session. */
  readonly session: string;
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
 * `call` checks its arguments; wrong ones give a failure that names them. @throws EtudeError for errors of the system only
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
  call(args: unknown, context: ToolContext, signal: AbortSignal): Promise<ToolOutcome>;
}

export interface ToolSpec<I extends z.ZodObject, O extends z.ZodObject> extends Pick<
  ToolDefinition,
  'name' | 'title' | 'readOnly' | 'idempotent'
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
  const { name, title, description, input, output, readOnly, idempotent } = spec;
  return {
    name,
    title,
    readOnly,
    idempotent,
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
