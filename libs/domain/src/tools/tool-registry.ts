import { ERROR_KINDS, errorCode, EtudeError, isAbort } from '@etude/contracts/errors';
import type { ToolContext, ToolDefinition, ToolOutcome } from './tool-definition.js';

/** Caller's codes that say that there is nobody left to answer. */
const GONE: ReadonlySet<string> = new Set(['CANCELLED', 'DEADLINE_EXCEEDED']);

/** Everything that an agent can call. */
export class ToolRegistry {
  readonly #tools = new Map<string, ToolDefinition>();

  constructor(tools: readonly ToolDefinition[] = []) {
    for (const tool of tools) this.register(tool);
  }

  /** @throws EtudeError ALREADY_EXISTS where another tool has this name */
  register(tool: ToolDefinition): void {
    if (this.#tools.has(tool.name))
      throw new EtudeError('ALREADY_EXISTS', `There is a tool "${tool.name}" already; give this one another name.`);
    this.#tools.set(tool.name, tool);
  }

  /** In the order in which they were registered. */
  list(): readonly ToolDefinition[] {
    return [...this.#tools.values()];
  }

  /**
   * A tool that is not there, wrong arguments, and what the agent or its caller did wrong are answers.
   *
   * @throws EtudeError what is the system's fault, such as SANDBOX_UNAVAILABLE; an AbortError when `signal` aborts
   */
  async call(name: string, args: unknown, context: ToolContext, signal: AbortSignal): Promise<ToolOutcome> {
    const tool = this.#tools.get(name);
    if (tool === undefined) return { success: false, error: `Tool '${name}' not found` };
    try {
      return await tool.call(args, context, signal);
    } catch (error) {
      const code = errorCode(error);
      if (isAbort(error) || GONE.has(code) || ERROR_KINDS[code].fault === 'system') throw error;
      return { success: false, error: (error as Error).message };
    }
  }
}
