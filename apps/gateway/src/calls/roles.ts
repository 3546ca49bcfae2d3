import type { DescMethod } from '@bufbuild/protobuf';
import { SERVICES } from '@etude/contracts/grpc';
import type { Role } from '@etude/platform/auth';

/** What a call needs, and whether the audit log keeps it. */
export interface CallRule {
  readonly role: Role;
  readonly audited: boolean;
}

type Rules = { readonly [S in keyof typeof SERVICES]: { readonly [M in keyof (typeof SERVICES)[S]['method']]: CallRule } };

const USER: CallRule = { role: 'user', audited: false };
const USER_AUDITED: CallRule = { role: 'user', audited: true };
const REVIEWER: CallRule = { role: 'reviewer', audited: false };
const REVIEWER_AUDITED: CallRule = { role: 'reviewer', audited: true };
const OPERATOR: CallRule = { role: 'operator', audited: false };
const OPERATOR_AUDITED: CallRule = { role: 'operator', audited: true };

/** The role of every call, the same over gRPC, HTTP and MCP. Audited are changes that a tenant's owners ask about later. */
export const RULES: Rules = {
  tasks: {
    submitTask: USER,
    getTask: USER,
    listTasks: USER,
    cancelTask: USER,
    answerTask: USER,
    waitTask: USER,
    explainStep: USER,
    getStep: USER,
    getUsage: USER,
    watchTask: USER,
  },
  skills: {
    listSkills: USER,
    getSkill: USER,
    searchSkills: USER,
    listSkillCategories: USER,
    listSkillVersions: USER,
    diffSkill: USER,
    checkSkill: USER,
    registerSkill: USER_AUDITED,
    verifySkill: USER,
    useSkill: USER,
    loadFunctions: USER,
    requestSkill: USER,
    getWantedSkill: USER,
    listWantedSkills: USER,
    withdrawWantedSkill: USER,
    importSkill: USER_AUDITED,
    exportSkill: USER,
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
  agents: { listAgents: USER, getAgent: USER, updateAgent: REVIEWER_AUDITED },
  tools: { listTools: USER, callTool: USER },
  worlds: { createWorld: USER, getWorld: USER, listWorlds: USER, moveInWorld: USER, deleteWorld: USER },
  memory: {
    searchMemory: USER,
    recall: USER,
    getMemory: USER,
    listMemory: USER,
    deleteMemory: USER_AUDITED,
    storeEpisode: USER,
    listRecentEpisodes: USER,
    storeFact: USER,
    updateFact: USER_AUDITED,
    listFactHistory: USER,
    undoFactDecision: USER_AUDITED,
    storeProcedure: USER,
    importDocument: USER_AUDITED,
    listDocuments: USER,
    deleteDocument: USER_AUDITED,
    addConversation: USER,
    listConversations: USER,
    listTurns: USER,
    deleteConversation: USER_AUDITED,
    exportMemory: USER_AUDITED,
    importMemory: USER_AUDITED,
    archiveMemory: USER_AUDITED,
    restoreMemory: USER_AUDITED,
    eraseMemory: USER_AUDITED,
    getErasure: USER,
    getMemoryStats: USER,
    getLift: USER,
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
