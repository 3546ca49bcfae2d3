import type { DescMethod } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { SERVICES } from '@etude/contracts/grpc';
import type { Identity, Role } from '@etude/platform/auth';

interface CallRule {
  readonly role: Role;
  readonly audited: boolean;
  /** How a caller that is bound to an end user may make the call. Absent: it may not. */
  readonly bound?: Bound;
}

/**
 * A path names the request's field that must be the caller's user. `own`: the handler finds only records of the user or of the whole tenant,
 * and changes only those of the user. `open`: the call shows no data of users.
 */
type Bound = 'user' | 'spec.user' | 'skill.user' | 'part.head.user' | 'whose.user' | 'own' | 'open';

type Rules = { readonly [S in keyof typeof SERVICES]: { readonly [M in keyof (typeof SERVICES)[S]['method']]: CallRule } };

const USER: CallRule = { role: 'user', audited: false };
const USER_AUDITED: CallRule = { role: 'user', audited: true };
const as = (bound: Bound): CallRule => ({ ...USER, bound });
const auditedAs = (bound: Bound): CallRule => ({ ...USER_AUDITED, bound });
const REVIEWER: CallRule = { role: 'reviewer', audited: false };
const REVIEWER_AUDITED: CallRule = { role: 'reviewer', audited: true };
const OPERATOR: CallRule = { role: 'operator', audited: false };
const OPERATOR_AUDITED: CallRule = { role: 'operator', audited: true };

/** The rules of every call, the same over gRPC, HTTP and MCP. A change is audited if a tenant may ask later who made it. */
export const RULES: Rules = {
  tasks: {
    submitTask: as('spec.user'),
    getTask: as('own'),
    listTasks: as('own'),
    cancelTask: as('own'),
    answerTask: as('own'),
    waitTask: as('own'),
    explainStep: as('own'),
    getStep: as('own'),
    getUsage: USER,
    watchTask: as('own'),
  },
  skills: {
    listSkills: as('user'),
    getSkill: as('user'),
    searchSkills: as('user'),
    listSkillCategories: as('user'),
    listSkillVersions: as('user'),
    diffSkill: as('user'),
    checkSkill: as('skill.user'),
    registerSkill: auditedAs('skill.user'),
    verifySkill: as('user'),
    useSkill: as('user'),
    loadFunctions: as('user'),
    requestSkill: as('user'),
    getWantedSkill: as('user'),
    listWantedSkills: as('user'),
    withdrawWantedSkill: as('user'),
    importSkill: auditedAs('part.head.user'),
    exportSkill: as('user'),
    getSkillReview: REVIEWER,
    approveSkill: REVIEWER_AUDITED,
    rejectSkill: REVIEWER_AUDITED,
    rollbackSkill: REVIEWER_AUDITED,
    deprecateSkill: REVIEWER_AUDITED,
    archiveSkill: REVIEWER_AUDITED,
    restoreSkill: REVIEWER_AUDITED,
    promoteSkill: REVIEWER_AUDITED,
    pruneSkills: REVIEWER_AUDITED,
    undoPrune: REVIEWER_AUDITED,
    revokeSource: REVIEWER_AUDITED,
    getSkillStats: REVIEWER,
  },
  agents: { listAgents: as('open'), getAgent: as('open'), updateAgent: REVIEWER_AUDITED },
  tools: { listTools: as('user'), callTool: as('user') },
  worlds: { createWorld: USER, getWorld: USER, listWorlds: USER, moveInWorld: USER, deleteWorld: USER },
  memory: {
    searchMemory: as('user'),
    recall: as('user'),
    getMemory: as('user'),
    listMemory: as('user'),
    deleteMemory: auditedAs('user'),
    storeEpisode: as('user'),
    listRecentEpisodes: as('user'),
    storeFact: as('user'),
    updateFact: auditedAs('own'),
    listFactHistory: as('own'),
    undoFactDecision: auditedAs('own'),
    storeProcedure: as('user'),
    importDocument: auditedAs('part.head.user'),
    listDocuments: as('user'),
    deleteDocument: auditedAs('own'),
    addConversation: as('user'),
    listConversations: as('user'),
    listTurns: as('own'),
    deleteConversation: auditedAs('own'),
    exportMemory: auditedAs('user'),
    importMemory: USER_AUDITED,
    archiveMemory: auditedAs('user'),
    restoreMemory: auditedAs('user'),
    eraseMemory: auditedAs('whose.user'),
    getErasure: as('own'),
    getMemoryStats: USER,
    getLift: as('user'),
    startReembedding: OPERATOR_AUDITED,
    stopReembedding: OPERATOR_AUDITED,
    getReembedding: OPERATOR,
    reconcileMemory: OPERATOR_AUDITED,
  },
  consolidation: {
    runConsolidation: USER_AUDITED,
    listConsolidationRuns: USER,
    getConsolidationRun: USER,
    undoConsolidation: REVIEWER_AUDITED,
  },
  queues: {
    listQueues: OPERATOR,
    listDeadLetters: OPERATOR,
    redriveDeadLetters: OPERATOR_AUDITED,
    listTenants: OPERATOR,
    listAudit: REVIEWER,
  },
  sandboxes: {
    createSandbox: USER,
    getSandbox: USER,
    listSandboxes: USER,
    renewSandbox: USER,
    closeSandbox: USER,
    execute: USER,
    answerToolCall: USER,
    cancelExecution: USER,
    uploadFile: USER,
    downloadFile: USER,
    getSandboxFile: USER,
    listSandboxFiles: USER,
    searchSandboxFiles: USER,
    deleteSandboxFile: USER,
  },
};

const BY_METHOD: ReadonlyMap<DescMethod, CallRule> = new Map(
  Object.entries(SERVICES).flatMap(([name, service]) => {
    const rules = RULES[name as keyof Rules] as Readonly<Record<string, CallRule>>;
    return service.methods.map((method): [DescMethod, CallRule] => [method, rules[method.localName]!]);
  }),
);

export const ruleOf = (method: DescMethod): CallRule => BY_METHOD.get(method)!;

/**
 * Limits a request to the end user that the caller is bound to, if any.
 *
 * @throws EtudeError PERMISSION_DENIED for another user, and for calls that reach more than one user's data
 */
export function bindToUser<R extends object>(request: R, caller: Pick<Identity, 'user'>, { bound }: CallRule): R {
  const { user } = caller;
  if (bound === undefined) requireUnbound(caller);
  if (user === undefined || bound === undefined || bound === 'own' || bound === 'open') return request;
  const holder = holderOf(request, bound);
  if (holder?.user === '') holder.user = user;
  if (holder === null || holder.user === user) return request;
  throw new EtudeError(
    'PERMISSION_DENIED',
    `Your JWT is bound to one user. Set ${bound.replace(/^(part|whose)\./, '')} to that user, or leave it empty.`,
  );
}

/** For data without a user, such as worlds. @throws EtudeError PERMISSION_DENIED for a caller that is bound to an end user */
export function requireUnbound({ user }: Pick<Identity, 'user'>): void {
  if (user === undefined) return;
  const message =
    'This call reaches data of all users, but your JWT is bound to one user. Use an API key, or a JWT with the role "reviewer".';
  throw new EtudeError('PERMISSION_DENIED', message);
}

type Holder = Partial<Record<string, unknown>>;

/** The part of a request that has its user; null if the request can't name a user. */
function holderOf(request: object, bound: Bound): { user?: unknown } | null {
  const { spec, skill, part, whose } = request as Record<string, Holder | undefined>;
  if (bound === 'user') return request;
  if (bound === 'spec.user') return spec ?? null;
  if (bound === 'skill.user') return skill ?? null;
  if (bound === 'whose.user') return { user: whose?.['case'] === 'user' ? whose['value'] : undefined };
  return part?.['case'] === 'head' ? (part['value'] as Holder) : null;
}

/** A caller that is bound to an end user changes only records of that user. @throws EtudeError PERMISSION_DENIED */
export function requireOwnRecord({ user }: Pick<Identity, 'user'>, owner: { readonly user: string | null } | undefined): void {
  if (user === undefined || owner === undefined || owner.user === user) return;
  throw new EtudeError(
    'PERMISSION_DENIED',
    'This record belongs to the whole tenant, but your JWT is bound to one user. Use an API key, or a JWT with the role "reviewer".',
  );
}
