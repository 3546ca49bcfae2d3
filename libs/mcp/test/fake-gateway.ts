import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { CallSettings } from '@etude/contracts/grpc-client';
import type { GatewayCalls } from '../src/gateway-calls.js';

/** A skill in the fake registry, with its exported folder. */
export interface FakeSkill {
  readonly name: string;
  readonly version: number;
  readonly status?: SkillStatus;
  /** The owner: the agent "default", or "@tenant". */
  readonly owner?: string;
  readonly files: Readonly<Record<string, string | Uint8Array>>;
}

export interface SeenCall {
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly settings: CallSettings;
}

export const manifest = (name: string, description: string, more = '') =>
  `---\nname: ${name}\ndescription: ${description}\n${more}---\n\n# ${name}\n\nRun \`scripts/main.py\`.\n`;

/** An error in the shape of a failed gRPC call. */
export const refusal = (code: number, details: string) =>
  Object.assign(new Error(`${code}: ${details}`), { code, details, metadata: undefined });
const NOT_FOUND = 5;

const DEFINITIONS = [
  {
    name: 'echo',
    title: 'Echo',
    description: 'Answers what it is told.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    outputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    readOnly: true,
    idempotent: true,
  },
  { name: 'hang', title: 'Hang', description: 'Never answers.', inputSchema: {}, outputSchema: {}, readOnly: false, idempotent: false },
];

/** A scripted gateway with the tools "echo" and "hang" and the given skills. */
export class FakeGateway implements GatewayCalls {
  readonly seen: SeenCall[] = [];
  readonly aborted: string[] = [];
  held: FakeSkill[] = [];
  definitions: typeof DEFINITIONS = DEFINITIONS;
  pageSize = 100;
  refuse: Error | null = null;

  readonly tools: GatewayCalls['tools'] = this.#served({
    listTools: () => ({ tools: this.definitions }),
    callTool: (request, settings) => this.#call(request, settings),
  });

  readonly skills: GatewayCalls['skills'] = this.#served({
    listSkills: (request) => this.#page(request),
    listSkillVersions: (request) => ({ skills: this.#versions(request).map(onWire) }),
    exportSkill: (request) => this.#export(request),
  });

  #served(answers: Readonly<Record<string, (request: never, settings: CallSettings) => unknown>>): never {
    const methods = Object.entries(answers).map(([method, answer]) => {
      const served = async (request: object, settings: CallSettings = {}) => {
        this.seen.push({ method, request: request as never, settings });
        if (this.refuse) throw this.refuse;
        return answer(request as never, settings);
      };
      return [method, served];
    });
    return Object.fromEntries(methods) as never;
  }

  #call({ tool, arguments: args }: { tool: string; arguments: { text?: string } }, { signal }: CallSettings = {}): unknown {
    if (tool === 'hang') return this.#hang(signal);
    if (tool !== 'echo') return { success: false, error: `Tool '${tool}' not found` };
    if (args.text === undefined) return { success: false, error: 'text is missing', result: { argument: 'text' } };
    return { success: true, result: { text: args.text }, error: '' };
  }

  #hang(signal: AbortSignal | undefined): Promise<never> {
    return new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => {
        this.aborted.push('hang');
        reject(refusal(1, 'Cancelled'));
      });
    });
  }

  #page({ status, pageToken = '' }: { status: SkillStatus; pageToken?: string }): unknown {
    if (pageToken !== '' && !/^\d+$/.test(pageToken)) throw refusal(3, 'page_token is not one of ours');
    const all = this.held.filter((skill) => (skill.status ?? SkillStatus.ACTIVE) === status);
    const from = Number(pageToken);
    const next = from + this.pageSize;
    return { skills: all.slice(from, next).map(onWire), nextPageToken: next < all.length ? String(next) : '' };
  }

  /** Versions from the narrowest owner that the agent reads, or from the requested owner. */
  #versions({ name, agent }: { name: string; agent: string }): FakeSkill[] {
    const named = this.held.filter((skill) => `skills/${skill.name}` === name).toSorted((a, b) => b.version - a.version);
    const owners = agent.startsWith('@') ? [agent] : [undefined, '@tenant'];
    const found = owners.map((owner) => named.filter((skill) => skill.owner === owner)).find((versions) => versions.length > 0);
    if (!found) throw refusal(NOT_FOUND, `There is no ${name}.`);
    return found;
  }

  #export(request: { name: string; agent: string; version: number }): unknown {
    const { name, version } = request;
    const found = this.#versions(request).find((skill) => skill.version === version);
    if (!found) throw refusal(NOT_FOUND, `${name} has no version ${version}.`);
    const files = Object.entries(found.files).map(([path, data]) => ({ path, data: typeof data === 'string' ? Buffer.from(data) : data }));
    return { files };
  }
}

const onWire = ({ name, version, owner = 'default', status = SkillStatus.ACTIVE }: FakeSkill) => ({
  name: `skills/${name}`,
  agent: owner,
  user: '',
  version,
  status,
});
