import type { Embedder } from '../ports/embedder.js';
import { type CodeInterpreterDeps, codeInterpreterTool } from './code-interpreter.js';
import { executeCodeTool, writeTodosTool } from './execute-code.js';
import { listSkillsTools } from './list-skills-tools.js';
import { loadFunctionsTool } from './load-functions-tool.js';
import { NearTools, searchTool } from './search-tool.js';
import { registerSkillTool } from './register-skill-tool.js';
import { useSkillTool } from './use-skill-tool.js';
import { ERROR_KINDS, errorCode, isAbort } from '@etude/contracts/errors';
import type { ToolContext, ToolDefinition, ToolOutcome } from './tool-definition.js';

export interface AgentToolsDeps extends CodeInterpreterDeps {
  readonly embedder: Embedder;
}

/** Every tool of an agent, most important first: a client of MCP is shown the first ten. Never one for each skill. */
export function agentTools(deps: AgentToolsDeps): ToolRegistry {
  const registry: ToolRegistry = new ToolRegistry([
    codeInterpreterTool(deps),
    searchTool({ finder: deps.finder, tools: new NearTools(() => registry.list(), deps.embedder) }),
    useSkillTool(deps),
    executeCodeTool(deps),
    loadFunctionsTool(deps),
    registerSkillTool(deps),
    writeTodosTool(deps.sessions),
    ...listSkillsTools(deps.finder),
  ]);
  return registry;
}

/** Caller's codes that say that there is nobody left to answer. */
const GONE: ReadonlySet<string> = new Set(['CANCELLED', 'DEADLINE_EXCEEDED']);

/** Everything that an agent can call. */
export class ToolRegistry {
  readonly #tools: ReadonlyMap<string, ToolDefinition>;

  constructor(tools: readonly ToolDefinition[]) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  /** In the order given. */
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
