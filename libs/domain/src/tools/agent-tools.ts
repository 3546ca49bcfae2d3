import type { Embedder } from '../ports/embedder.js';
import { codeInterpreterTool, type CodeInterpreterDeps } from './code-interpreter.js';
import { executeCodeTool } from './execute-code.js';
import { listSkillsTools } from './list-skills-tools.js';
import { loadFunctionsTool } from './load-functions-tool.js';
import { NearTools } from './near-tools.js';
import { registerSkillTool } from './register-skill-tool.js';
import { searchTool } from './search-tool.js';
import { ToolRegistry } from './tool-registry.js';
import { useSkillTool } from './use-skill-tool.js';
import { writeTodosTool } from './write-todos.js';

export interface AgentToolsDeps extends CodeInterpreterDeps {
  readonly embedder: Embedder;
}

/** The ten tools that every agent has; never one for each skill. */
export function agentTools(deps: AgentToolsDeps): ToolRegistry {
  const registry = new ToolRegistry();
  const tools = new NearTools(() => registry.list(), deps.embedder);
  const all = [
    codeInterpreterTool(deps),
    searchTool({ finder: deps.finder, tools }),
    useSkillTool(deps),
    executeCodeTool(deps),
    loadFunctionsTool(deps),
    registerSkillTool(deps),
    writeTodosTool(deps.sessions),
    ...listSkillsTools(deps.finder),
  ];
  for (const tool of all) registry.register(tool);
  return registry;
}
