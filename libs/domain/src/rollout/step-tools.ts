import type { CellTool } from '@etude/contracts/scratchpad';
import type { Json } from '@etude/contracts/json';
import type { OutsideCaller, OutsideTool } from '@etude/contracts/outside-tools';
import { z } from 'zod';
import type { ChatTool } from '../ports/model.js';
import type { WorkSandbox } from '../ports/sandboxes.js';
import { findSkill } from '../skills/life/find-skill.js';
import { useSkill } from '../skills/proof/use-skill.js';
import { agentTools, ToolRegistry } from '../tools/agent-tools.js';
import type { RememberDeps } from '../tools/memory-tools.js';
import { searchedWithoutWithheld } from './recall-step.js';
import { NearTools } from '../tools/search-tool.js';
import type { Todo, ToolContext, ToolDefinition, ToolOutcome } from '../tools/tool-definition.js';
import { defineTool } from '../tools/tool-definition.js';
import type { UseSkillToolDeps } from '../tools/use-skill-tool.js';
import type { RolloutContext } from './rollout-context.js';
import { FINAL, PYTHON } from './step-calls.js';

/** If there are more tools than this, the prompt lists only Etude's own tools. The model finds tools of outside servers with `search`. */
const OFFERED_MAX = 14;
const FOUND_MAX = 5;
const DESCRIPTION_CHARS_MAX = 600;
/** Limit for all tools of outside servers together, as JSON. Further tools are left out. */
const LISTED_CHARS_MAX = 500_000;

const ENDS: readonly ChatTool[] = [
  {
    name: PYTHON,
    description: 'Runs Python in your sandbox. Names live on from one call to the next. Print what you want to see.',
    inputSchema: { type: 'object', properties: { code: { type: 'string' } }, required: ['code'] },
  },
  {
    name: FINAL,
    description: 'Ends your work with the answer: a text, code, or the path of a file in the working directory that holds it.',
    inputSchema: { type: 'object', properties: { answer: { type: 'string' }, file: { type: 'string' } } },
  },
];

type ListedTool = Pick<ToolDefinition, 'name' | 'title' | 'inputSchema' | 'describe'>;

/** The tools of a rollout's agent: Etude's own tools, and the tools of the MCP servers in the agent's settings. */
export class StepTools {
  todos: readonly Todo[] = [];
  readonly #registry: ToolRegistry;
  readonly #listed: readonly ListedTool[];
  /** Whether the prompt leaves out tools of outside servers until `search` finds them. */
  readonly #isMany: boolean;
  readonly #wireNames: ReadonlyMap<string, string>;
  readonly #loaded = new Set<string>();

  private constructor(
    private readonly context: RolloutContext,
    own: readonly ToolDefinition[],
    private readonly caller: OutsideCaller,
    tools: readonly OutsideTool[],
  ) {
    const outside = tools.map(({ description, ...tool }): ListedTool => ({
      ...tool,
      title: description.slice(0, 120),
      describe: () => description,
    }));
    this.#isMany = outside.length > 0 && own.length + outside.length > OFFERED_MAX;
    const near = new NearTools(() => [...own, ...outside], context.deps.embedder);
    this.#registry = new ToolRegistry([...own, ...(this.#isMany ? [searchTools(near)] : [])]);
    this.#listed = [...this.#registry.listed, ...outside];
    this.#wireNames = wireNames([...ENDS, ...this.#listed].map(({ name }) => name));
  }

  /** Lists the agent's tools. If a server is down, the list has none of its tools. */
  static async open(
    context: RolloutContext,
    { sandbox, touched }: { readonly sandbox: () => Promise<WorkSandbox>; readonly touched: () => Promise<readonly string[]> },
  ): Promise<StepTools> {
    const { deps, spec, tenant, scope, rolloutId } = context;
    const world = spec.labels['world'];
    const { mcpServers: servers } = await context.agentSettings();
    const caller = { tenant, agent: scope.agent, servers };
    const { off, readOnly } = spec.memory;
    const provenance: RememberDeps['provenance'] = async () => ({
      source: 'agent',
      episodes: [`${rolloutId}.episode`],
      touched: [...(await touched())],
    });
    const own = agentTools({
      workspace: sandbox,
      // The workbench keeps the plan, which it reads from the journaled call.
      todos: { putTodos: async () => {} },
      skills: off ? undefined : skillsOf(context),
      memory: off ? undefined : () => Promise.resolve(searchedWithoutWithheld(context)),
      remember: off || readOnly ? undefined : { outbox: deps.outbox, clock: deps.clock, provenance },
      world: world === undefined ? undefined : { move: deps.moveInWorld, world },
      asking: { questions: deps.questions, clock: deps.clock, rolloutId },
    });
    return new StepTools(context, own, caller, servers.length === 0 ? [] : await listedTools(context, caller));
  }

  async offered(): Promise<readonly ChatTool[]> {
    const settings = await this.context.settings();
    const shown = this.#listed.filter(({ name }) => !this.#isMany || !this.isOutside(name) || this.#loaded.has(name));
    const tools = shown.map(({ name, inputSchema, ...tool }) => {
      const description = tool.describe(settings).slice(0, DESCRIPTION_CHARS_MAX);
      return { name: this.#wireNames.get(name) ?? name, description, inputSchema };
    });
    return [...ENDS, ...tools];
  }

  nameOf = (offered: string): string => [...this.#wireNames].find(([, wire]) => wire === offered)?.[0] ?? offered;

  forCells(): readonly CellTool[] {
    return this.#listed
      .filter(({ name }) => name !== 'ask_caller')
      .map(({ name, inputSchema }) => ({ name, parameters: parametersOf(inputSchema), description: '' }));
  }

  /** Whether prompts may hold texts of outside servers, such as descriptions or results of their tools. */
  get readsOutside(): boolean {
    return this.caller.servers.length > 0;
  }

  isStable(tool: string): boolean {
    return this.#registry.isStable(tool);
  }

  isOutside(tool: string): boolean {
    return tool.includes('/');
  }

  /** The span follows OpenTelemetry's conventions for GenAI. */
  call(tool: string, args: Readonly<Record<string, unknown>>, context: ToolContext, signal: AbortSignal) {
    const { tracing, deps } = this.context;
    const values = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool, 'gen_ai.tool.call.id': context.callId };
    return tracing.span(`execute_tool ${tool}`, { values }, async (span) => {
      span.setContent(() => ({ 'gen_ai.tool.call.arguments': JSON.stringify(args) }));
      const outcome = this.isOutside(tool)
        ? await deps.outsideTools.call(this.caller, tool, args as Readonly<Record<string, Json>>, signal)
        : await this.#registry.call(tool, args, context, signal);
      span.set({ 'etude.tool.success': outcome.success });
      span.setContent(() => ({ 'gen_ai.tool.call.result': JSON.stringify(outcome) }));
      return outcome;
    });
  }

  /** From the next step on, the prompt lists the tools that a call of `search` found. */
  noticeFound(tool: string, outcome: ToolOutcome | { readonly success: boolean; readonly result?: unknown }): void {
    if (tool !== 'search' || !outcome.success) return;
    const { tools = [] } = (outcome.result ?? {}) as { tools?: ReadonlyArray<{ readonly name: string }> };
    for (const { name } of tools) this.#loaded.add(name);
  }
}

const WIRE_CHARS_MAX = 64;

/** The name of each tool for model servers, which accept only letters, digits, "_" and "-". Equal names get a number. */
function wireNames(tools: readonly string[]): ReadonlyMap<string, string> {
  const byWire = new Map<string, string>();
  for (const tool of tools) {
    const plain = tool.replaceAll('/', '__').replaceAll(/[^A-Za-z0-9_-]/g, '_');
    let wire = plain.slice(0, WIRE_CHARS_MAX);
    for (let n = 2; byWire.has(wire); n += 1) wire = `${plain.slice(0, WIRE_CHARS_MAX - 4)}_${n}`;
    byWire.set(wire, tool);
  }
  return new Map([...byWire].map(([wire, tool]) => [tool, wire]));
}

function parametersOf({ properties }: Readonly<Record<string, unknown>>): readonly string[] {
  return typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
}

function skillsOf({ deps }: RolloutContext): UseSkillToolDeps {
  return {
    skills: {
      find: (reader, name) => findSkill(deps.procedural, reader, name),
      use: (reader, call, signal) => useSkill({ reader, ...call }, deps, signal),
    },
    wishes: deps.wishes,
  };
}

/** The tools of outside servers. The list is journaled, so that a later worker and `explainStep` see the same tools. */
function listedTools({ steps, deps, signal }: RolloutContext, caller: OutsideCaller): Promise<readonly OutsideTool[]> {
  return steps.run('a1.tools', 'tool', async () => {
    const { tools, problems } = await deps.outsideTools.list(caller, signal);
    let room = LISTED_CHARS_MAX;
    const value = tools.filter((tool) => (room -= JSON.stringify(tool).length) > 0);
    const left = value.length < tools.length ? [`${tools.length - value.length} tools were left out, because the list is too long`] : [];
    return { value, summary: [`${value.length} tools of MCP servers`, ...problems, ...left].join('; ').slice(0, 400), usage: { steps: 0 } };
  });
}

function searchTools(near: NearTools): ToolDefinition {
  return defineTool({
    name: 'search',
    title: 'Search tools',
    description: 'Finds more tools for a purpose. Those found can be called from the next step on.',
    input: z.strictObject({ query: z.string().trim().min(1).max(1_000) }),
    output: z.strictObject({ tools: z.array(z.strictObject({ name: z.string(), description: z.string() })) }),
    readOnly: true,
    idempotent: true,
    async run({ query }, { settings }, signal) {
      const found = await near.search(query, FOUND_MAX, signal);
      const tools = found.map(({ tool }) => ({ name: tool.name, description: tool.describe(settings).slice(0, DESCRIPTION_CHARS_MAX) }));
      return { success: true, result: { tools } };
    },
  });
}

/** The query under which a call's finding is stored: a path with its lines, a text, or all arguments. */
export function queryOf(tool: string, args: Readonly<Record<string, unknown>>): string {
  if (tool.includes('/') && Object.keys(args).length > 1) return JSON.stringify(args);
  const { path, from_line: from, to_line: to, text, query, folder } = args;
  if (typeof path === 'string') return typeof from === 'number' || typeof to === 'number' ? `${path}:${JSON.stringify([from, to])}` : path;
  const asked = [text, query, folder].find((one) => typeof one === 'string');
  return asked ?? JSON.stringify(args);
}
