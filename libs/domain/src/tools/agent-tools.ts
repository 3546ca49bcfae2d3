import type { Embedder } from '../ports/model.js';
import { askCallerTool, type AskCallerDeps } from './ask-caller-tool.js';
import { type CodeInterpreterDeps, codeInterpreterTool } from './code-interpreter.js';
import { executeCodeTool, loadFunctionsTool, writeTodosTool } from './execute-code.js';
import { listCategoriesTool, listSkillsTools, NearTools, searchTool } from './search-tool.js';
import { recallOneTools, recallTool, type RememberDeps, rememberTool, type SearchedMemory } from './memory-tools.js';
import { registerSkillTool } from './register-skill-tool.js';
import { useSkillTool, type UseSkillToolDeps } from './use-skill-tool.js';
import { ERROR_KINDS, errorCode, isAbort } from '@etude/contracts/errors';
import type { ToolContext, ToolDefinition, ToolOutcome, ToolSessions } from './tool-definition.js';
import { type SandboxNow, workspaceTools } from './workspace-tools.js';
import { type WorldParts, worldTools } from './world-tools.js';

/** What tools work with. A caller whose parts lack one has no tools that need it. */
export interface ToolParts {
  /** Runs code in sandboxes, and finds and registers skills. Only callers of the gateway have it. */
  readonly code?: CodeInterpreterDeps & { readonly embedder: Embedder };
  /** The sandbox of a task's agent. */
  readonly workspace?: SandboxNow;
  readonly todos: Pick<ToolSessions, 'putTodos'>;
  readonly skills?: UseSkillToolDeps;
  /** Opens memory at the first call. */
  readonly memory?: () => Promise<SearchedMemory>;
  readonly remember?: RememberDeps;
  readonly world?: WorldParts;
  /** Only a task's agent can ask a caller. */
  readonly asking?: AskCallerDeps;
}

/**
 * The list of all tools, for callers of the gateway and for agents of tasks. The most important come first: an MCP client shows the first
 * ten. Skills are not tools of their own.
 */
export function agentTools({ code, workspace, todos, skills, memory, remember, world, asking }: ToolParts): readonly ToolDefinition[] {
  const tools: readonly ToolDefinition[] = [
    ...madeOf(workspace, workspaceTools),
    ...madeOf(code, codeInterpreterTool, (deps) => searchTool(deps.skills, new NearTools(() => tools, deps.embedder))),
    ...madeOf(skills, useSkillTool),
    ...madeOf(code, executeCodeTool, loadFunctionsTool, registerSkillTool),
    writeTodosTool(todos),
    // Among the first ten, one tool stands for its relatives, which can be called by name.
    ...madeOf(code && memory, recallTool),
    ...madeOf(remember, rememberTool),
    ...madeOf(code, listCategoriesTool),
    ...madeOf(memory, recallOneTools),
    ...madeOf(code, listSkillsTools),
    ...madeOf(world, worldTools),
    ...madeOf(asking, askCallerTool),
  ];
  return tools;
}

type MakeTools<Part> = (part: Part) => ToolDefinition | readonly ToolDefinition[];

function madeOf<Part>(part: Part | undefined, ...make: ReadonlyArray<MakeTools<Part>>): readonly ToolDefinition[] {
  return part === undefined ? [] : make.flatMap((one) => one(part));
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

  /** Whether an equal call of a rollout has the same answer while its files and its memory are unchanged. */
  isStable(name: string): boolean {
    return this.isRead(name) && this.#tools.get(name)?.volatile !== true;
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
