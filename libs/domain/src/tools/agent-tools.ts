import type { Embedder } from '../ports/model.js';
import { askCallerTool, type AskCallerDeps } from './ask-caller-tool.js';
import { type CodeInterpreterDeps, codeInterpreterTool } from './code-interpreter.js';
import { executeCodeTool, loadFunctionsTool, writeTodosTool } from './execute-code.js';
import { listCategoriesTool, listSkillsTools, NearTools, searchTool } from './search-tool.js';
import { recallOneTools, recallTool, type RememberDeps, rememberTool } from './memory-tools.js';
import type { SearchedMemory } from '../recall/recollect.js';
import { registerSkillTool } from './register-skill-tool.js';
import { useSkillTool, type UseSkillToolDeps } from './use-skill-tool.js';
import { ERROR_KINDS, errorCode, isAbort } from '@etude/contracts/errors';
import type { ToolContext, ToolDefinition, ToolOutcome, ToolSessions } from './tool-definition.js';
import { type SandboxNow, workspaceTools } from './workspace-tools.js';
import { type WorldParts, worldTools } from './world-tools.js';

/** The dependencies of the tools. If a part is absent, the tools that need it are left out. */
interface ToolParts {
  /** For tools that run code in their own sandboxes, and for tools that find and register skills. Only the gateway sets it. */
  readonly code?: CodeInterpreterDeps & { readonly embedder: Embedder };
  readonly workspace?: SandboxNow;
  readonly todos: Pick<ToolSessions, 'putTodos'>;
  readonly skills?: UseSkillToolDeps;
  /** Opens memory at the first call. */
  readonly memory?: () => Promise<SearchedMemory>;
  readonly remember?: RememberDeps;
  readonly world?: WorldParts;
  /** For asking the caller. Only an agent that works on a task has a caller. */
  readonly asking?: AskCallerDeps;
}

/** Etude's own tools, for the gateway and for tasks. The most important tools come first, because an MCP client shows only the first ten. */
export function agentTools({ code, workspace, todos, skills, memory, remember, world, asking }: ToolParts): readonly ToolDefinition[] {
  const tools: readonly ToolDefinition[] = [
    ...madeOf(workspace, workspaceTools),
    ...madeOf(code, codeInterpreterTool, (deps) => searchTool(deps.skills, new NearTools(() => tools, deps.embedder))),
    ...madeOf(skills, useSkillTool),
    ...madeOf(code, executeCodeTool, loadFunctionsTool, registerSkillTool),
    writeTodosTool(todos),
    // Only one of the recall tools and one of the list tools is among the first ten, so that the ten are varied.
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

/** After an error with one of these codes, the caller no longer waits for an answer. */
const GONE: ReadonlySet<string> = new Set(['CANCELLED', 'DEADLINE_EXCEEDED']);

export class ToolRegistry {
  readonly #tools: ReadonlyMap<string, ToolDefinition>;

  constructor(
    readonly listed: readonly ToolDefinition[],
    unlisted: readonly ToolDefinition[] = [],
  ) {
    this.#tools = new Map([...listed, ...unlisted].map((tool) => [tool.name, tool]));
  }

  isRead(name: string): boolean {
    return this.#tools.get(name)?.readOnly === true;
  }

  /** Whether equal calls have the same answer as long as files and memory are unchanged. */
  isStable(name: string): boolean {
    return this.isRead(name) && this.#tools.get(name)?.volatile !== true;
  }

  /**
   * Calls a tool. An unknown tool, wrong arguments, and errors whose fault is the agent's or the caller's are returned as failures.
   *
   * @throws EtudeError system errors, such as SANDBOX_UNAVAILABLE, and CANCELLED or DEADLINE_EXCEEDED; an AbortError when `signal` aborts
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
