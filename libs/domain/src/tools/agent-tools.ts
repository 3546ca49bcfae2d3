import type { Embedder } from '../ports/model.js';
import { type CodeInterpreterDeps, codeInterpreterTool } from './code-interpreter.js';
import { executeCodeTool, loadFunctionsTool, writeTodosTool } from './execute-code.js';
import { listSkillsTools, NearTools, searchTool } from './search-tool.js';
import { memoryTools, type MemoryToolsDeps } from './memory-tools.js';
import { registerSkillTool } from './register-skill-tool.js';
import { useSkillTool } from './use-skill-tool.js';
import { ERROR_KINDS, errorCode, isAbort } from '@etude/contracts/errors';
import type { ToolContext, ToolDefinition, ToolOutcome } from './tool-definition.js';

export interface AgentToolsDeps extends CodeInterpreterDeps {
  readonly memory: MemoryToolsDeps;
  readonly embedder: Embedder;
}

/**
 * Every tool that agents call over the gateway, most important first: an MCP client shows the first ten. Skills are not tools of their own.
 * The agent of a rollout has those of `StepTools`.
 *
 * @param unlisted tools that can be called by name only
 */
export function agentTools(deps: AgentToolsDeps, unlisted: readonly ToolDefinition[] = []): ToolRegistry {
  const [recall, ...recallOne] = memoryTools(deps.memory);
  const remember = recallOne.pop();
  const [categories, ...listOne] = listSkillsTools(deps.skills);
  const listed: readonly ToolDefinition[] = [
    codeInterpreterTool(deps),
    searchTool(deps.skills, new NearTools(() => listed, deps.embedder)),
    useSkillTool(deps),
    executeCodeTool(deps),
    loadFunctionsTool(deps),
    registerSkillTool(deps),
    writeTodosTool(deps.sessions),
    // One tool stands for its relatives, which can be called by name.
    recall!,
    remember!,
    categories!,
    ...recallOne,
    ...listOne,
  ];
  return new ToolRegistry(listed, unlisted);
}

/** Error codes after which no caller waits for an answer. */
const GONE: ReadonlySet<string> = new Set(['CANCELLED', 'DEADLINE_EXCEEDED']);

export class ToolRegistry {
  readonly #tools: ReadonlyMap<string, ToolDefinition>;

  constructor(
    readonly listed: readonly ToolDefinition[],
    unlisted: readonly ToolDefinition[] = [],
  ) {
    this.#tools = new Map([...listed, ...unlisted].map((tool) => [tool.name, tool]));
  }

  /** Whether a tool changes nothing; false for an unknown one. */
  isRead(name: string): boolean {
    return this.#tools.get(name)?.readOnly === true;
  }

  /**
   * Calls a tool. An unknown tool, wrong arguments and errors of the agent or caller are failures in the answer.
   *
   * @throws EtudeError system errors, such as SANDBOX_UNAVAILABLE; an AbortError when `signal` aborts
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
