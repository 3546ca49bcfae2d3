import type { JsonObject, JsonValue, MessageInitShape } from '@bufbuild/protobuf';
import { fromJson, toJson } from '@bufbuild/protobuf';
import { ListValueSchema, ValueSchema } from '@bufbuild/protobuf/wkt';
import type { Calls } from './calls.js';
import { SkillFailedError } from './errors.js';
import {
  type SearchSkillsResponse_Hit,
  type Skill,
  type SkillDraftSchema,
  type SkillReview,
  Skills as Service,
  type SkillStatus,
} from './gen/etude/v1/skills_pb.js';

const VERIFY_MS = 120_000;

/** The owner of a skill. */
export interface Owner {
  readonly agent?: string;
  readonly user?: string;
}

export interface SkillVersion extends Owner {
  /** Default: the newest. */
  readonly version?: number;
}

/** A test of a function: its arguments and the expected result. */
export type SkillTest = readonly [args: readonly JsonValue[], expected: JsonValue];

export interface RegisterOptions extends Owner {
  readonly tests?: readonly SkillTest[];
  /** Whether to wait for the verification; default true. */
  readonly wait?: boolean;
  /** Further fields of the skill. */
  readonly draft?: MessageInitShape<typeof SkillDraftSchema> & object;
}

export interface SkillSearch extends Owner {
  readonly tags?: readonly string[];
  readonly minSimilarity?: number;
  readonly limit?: number;
}

const named = (name: string) => (name.startsWith('skills/') ? name : `skills/${name}`);

/** Verified functions that solve tasks without a model call. */
export class Skills {
  constructor(private readonly calls: Calls) {}

  /** The approved skills that are most similar to the query, best first. */
  async search(query: string, { tags = [], limit, ...rest }: SkillSearch = {}): Promise<SearchSkillsResponse_Hit[]> {
    return (await this.calls.unary(Service.method.searchSkills, { query, tags: [...tags], maxResults: limit, ...rest })).hits;
  }

  /**
   * Runs a skill. Returns its result as plain data, or for a program its output.
   *
   * @param requestMissing whether to request a skill that doesn't exist
   * @throws SkillFailedError
   */
  async use(
    name: string,
    parameters: JsonObject = {},
    { requestMissing = false, ...rest }: Owner & { readonly stdin?: string; readonly requestMissing?: boolean } = {},
  ): Promise<JsonValue> {
    const answer = await this.calls.unary(Service.method.useSkill, { name: named(name), parameters, noRequest: !requestMissing, ...rest });
    if (!answer.success) throw new SkillFailedError(answer);
    return answer.result === undefined ? answer.output : toJson(ValueSchema, answer.result);
  }

  /** Registers a function. It is verified in sandboxes, then waits for a review or is approved. */
  async register(name: string, description: string, code: string, options: RegisterOptions = {}): Promise<Skill> {
    const { tests = [], wait = true, draft = {}, ...owner } = options;
    const cases = tests.map(([args, expected]) => ({
      test: {
        case: 'call' as const,
        value: { args: fromJson(ListValueSchema, [...args]), expected: fromJson(ValueSchema, expected) },
      },
    }));
    const skill = { name, description, code, tests: cases, ...owner, ...draft };
    return this.calls.unary(Service.method.registerSkill, { skill, wait }, wait ? { timeoutMs: VERIFY_MS } : {});
  }

  async get(name: string, of: SkillVersion = {}): Promise<Skill> {
    return this.calls.unary(Service.method.getSkill, { name: named(name), ...of });
  }

  /** All skills. Code and tests are left out. */
  list({ status, ...rest }: Owner & { readonly category?: string; readonly status?: SkillStatus } = {}) {
    return this.calls.pages(Service.method.listSkills, { status, brief: true, ...rest }, ({ skills }) => skills);
  }

  /** Everything for a review: code, differences, evidence, tests and similar skills. */
  async review(name: string, of: SkillVersion = {}): Promise<SkillReview> {
    return this.calls.unary(Service.method.getSkillReview, { name: named(name), ...of });
  }

  /** Approves the version with exactly this digest. Needs the role reviewer. */
  async approve(name: string, digest: string, of: SkillVersion = {}): Promise<Skill> {
    return this.calls.unary(Service.method.approveSkill, { name: named(name), digest, ...of });
  }

  /** Rejects a skill with a reason. Needs the role reviewer. */
  async reject(name: string, reason: string, of: SkillVersion = {}): Promise<Skill> {
    return this.calls.unary(Service.method.rejectSkill, { name: named(name), reason, ...of });
  }
}
