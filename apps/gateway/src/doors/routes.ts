import type { DescField, DescMethod } from '@bufbuild/protobuf';
import { SERVICES } from '@etude/contracts/grpc';
import { bytesMaxOf, MIB } from '../calls/calls.js';

/**
 * Formats of a body. `json`: one message each way. `lines`: JSON Lines, in the field `lines` of the messages.
 * `bytes`: the file itself, each way. `archive`: a packed folder. The query describes both. `events`: JSON, answered by server-sent events.
 */
export type Body = 'json' | 'lines' | 'events' | 'bytes' | 'archive';

export interface Place {
  readonly verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Segments in braces are fields of the request, by path; `{name=skills}` is the field with the prefix "skills/". */
  readonly path: string;
  readonly summary: string;
  /** Maximum size of the body. */
  readonly bytesMax: number;
}

export interface Route extends Place {
  readonly method: DescMethod;
  readonly body: Body;
}

/** The first message of an upload, which the query describes. */
export const headOf = (method: DescMethod): DescField => method.input.fields.find(({ name }) => name === 'head' || name === 'header')!;

/** Limits for bodies that become several messages. */
const STREAMED_BYTES_MAX: Readonly<Record<string, number>> = { ImportDocument: 32 * MIB, ImportSkill: 64 * MIB, UploadFile: 64 * MIB };

const below =
  (root: string) =>
  (verb: Place['verb'], path: string, method: DescMethod, summary: string, body: Body = 'json'): Route => ({
    verb,
    path: `${root}${path}`,
    method,
    summary,
    body,
    bytesMax: STREAMED_BYTES_MAX[method.name] ?? bytesMaxOf(method),
  });

const memory = below('/v1/memory');
const skills = below('/v1/skills');
const wishes = below('/v1/wantedSkills');
const agents = below('/v1/agents');
const tools = below('/v1/tools');
const tasks = below('/v1/tasks');
const worlds = below('/v1/worlds');
const runs = below('/v1/consolidationRuns');
const queues = below('/v1/queues');
const tenants = below('/v1/tenants');
const sandboxes = below('/v1/sandboxes');
const { method: task } = SERVICES.tasks;
const { method: call } = SERVICES.memory;
const { method: skill } = SERVICES.skills;
const { method: agent } = SERVICES.agents;
const { method: tool } = SERVICES.tools;
const { method: world } = SERVICES.worlds;
const { method: run } = SERVICES.consolidation;
const { method: queue } = SERVICES.queues;
const { method: sandbox } = SERVICES.sandboxes;
const SKILL = '/{name=skills}';
const TASK = '/{name=tasks}';
const RUN = '/{name=consolidationRuns}';
const SANDBOX = '/{name=sandboxes}';

/** The paths of `etude.v1` calls. A new call only needs a line here. */
export const ROUTES: readonly Route[] = [
  tasks('POST', '', task.submitTask, 'Submit a task'),
  tasks('GET', '', task.listTasks, 'List tasks, newest first'),
  tasks('GET', ':usage', task.getUsage, 'Tell what model calls have cost'),
  tasks('GET', TASK, task.getTask, 'Get a task'),
  tasks('POST', `${TASK}:cancel`, task.cancelTask, 'Stop a task'),
  tasks('POST', `${TASK}:answer`, task.answerTask, 'Answer the open question of a task'),
  tasks('POST', `${TASK}:wait`, task.waitTask, 'Wait until a task is finished or asks a question'),
  tasks('GET', `${TASK}:watch`, task.watchTask, 'Watch the events of a task', 'events'),
  tasks('GET', `${TASK}:step`, task.getStep, 'Show what came of a step'),
  tasks('GET', `${TASK}:explain`, task.explainStep, 'Show what the model was asked in a step'),
  memory('POST', ':search', call.searchMemory, 'Search memory by meaning and by words'),
  memory('POST', ':recall', call.recall, 'Recall facts, experiences and procedures for a context'),
  memory('GET', '/stats', call.getMemoryStats, 'Count the records in memory'),
  memory('GET', '/lift', call.getLift, 'Tell what memory is worth to rollouts'),
  memory('GET', '/episodes', call.listRecentEpisodes, 'List episodes, newest first'),
  memory('POST', '/episodes', call.storeEpisode, 'Store an episode of an outside agent'),
  memory('POST', '/facts', call.storeFact, 'Store a fact'),
  memory('PATCH', '/facts/{id}', call.updateFact, 'Change the text or the confidence of a fact'),
  memory('GET', '/facts/{id}/history', call.listFactHistory, 'List a fact and the facts that it replaced'),
  memory('POST', '/facts/{id}:undo', call.undoFactDecision, 'Undo the last decision about two facts'),
  memory('POST', '/procedures', call.storeProcedure, 'Store a procedure in words'),
  memory('GET', '/documents', call.listDocuments, 'List documents'),
  memory('POST', '/documents', call.importDocument, 'Import a document; the body is the file', 'bytes'),
  memory('DELETE', '/documents/{id}', call.deleteDocument, 'Delete a document with its chunks'),
  memory('GET', '/conversations', call.listConversations, 'List conversations'),
  memory('POST', '/conversations', call.addConversation, 'Add messages to a conversation'),
  memory('GET', '/conversations/{id}/turns', call.listTurns, 'List the messages of a conversation, in order'),
  memory('DELETE', '/conversations/{id}', call.deleteConversation, 'Delete a conversation with its turns'),
  memory('GET', '/records/{layer}/{id}', call.getMemory, 'Get a record, whole'),
  memory('DELETE', '/records/{layer}/{id}', call.deleteMemory, 'Erase a record with its parts'),
  memory('GET', '/records', call.listMemory, 'List records of one kind, newest first'),
  memory('GET', ':export', call.exportMemory, 'Export memory as JSON Lines', 'lines'),
  memory('POST', ':import', call.importMemory, 'Import lines of an export', 'lines'),
  memory('POST', ':archive', call.archiveMemory, 'Archive records of little worth'),
  memory('POST', ':restore', call.restoreMemory, 'Bring archived records back'),
  memory('POST', ':erase', call.eraseMemory, 'Erase every trace of an agent, a user or the tenant'),
  memory('GET', '/erasures/{id}', call.getErasure, 'Get the receipt of an erasure'),
  memory('POST', ':reembed', call.startReembedding, 'Fill the vectors of another embedder; for operators'),
  memory('POST', ':stopReembedding', call.stopReembedding, 'Stop the re-embedding; for operators'),
  memory('GET', '/reembedding', call.getReembedding, 'Get the progress of the re-embedding; for operators'),
  memory('POST', ':reconcile', call.reconcileMemory, 'Repair half-written records; for operators'),
  skills('GET', '', skill.listSkills, 'List skills by name'),
  skills('POST', '', skill.registerSkill, 'Register a skill, or a new version of one'),
  skills('POST', ':check', skill.checkSkill, 'Verify a draft without storing it'),
  skills('POST', ':search', skill.searchSkills, 'Search active skills by meaning and by words'),
  skills('POST', ':load', skill.loadFunctions, 'Get code that defines functions and their dependencies'),
  skills('POST', ':import', skill.importSkill, 'Import an archive of skills; the body is the archive', 'archive'),
  skills('POST', ':prune', skill.pruneSkills, 'Archive unused, failing or superseded skills'),
  skills('POST', ':undoPrune', skill.undoPrune, 'Undo a pruning'),
  skills('POST', ':revokeSource', skill.revokeSource, 'Withdraw skills and facts learned from a source'),
  skills('GET', ':stats', skill.getSkillStats, 'Count the uses and failures of skills'),
  skills('GET', ':categories', skill.listSkillCategories, 'List categories of skills'),
  skills('GET', SKILL, skill.getSkill, 'Get a skill'),
  skills('GET', `${SKILL}/versions`, skill.listSkillVersions, 'List all versions of a skill, newest first'),
  skills('GET', `${SKILL}:diff`, skill.diffSkill, 'Show what changed between two versions'),
  skills('GET', `${SKILL}:review`, skill.getSkillReview, 'Get the review of a skill; for reviewers'),
  skills('GET', `${SKILL}:export`, skill.exportSkill, 'Get a skill as a folder of the Agent Skills format'),
  skills('POST', `${SKILL}:verify`, skill.verifySkill, 'Verify a skill again'),
  skills('POST', `${SKILL}:approve`, skill.approveSkill, 'Approve a skill; for reviewers'),
  skills('POST', `${SKILL}:reject`, skill.rejectSkill, 'Reject a skill; for reviewers'),
  skills('POST', `${SKILL}:rollback`, skill.rollbackSkill, 'Bring an earlier version back; for reviewers'),
  skills('POST', `${SKILL}:deprecate`, skill.deprecateSkill, 'Deprecate a skill; for reviewers'),
  skills('POST', `${SKILL}:archive`, skill.archiveSkill, 'Archive a skill; for reviewers'),
  skills('POST', `${SKILL}:restore`, skill.restoreSkill, 'Bring an archived skill back; for reviewers'),
  skills('POST', `${SKILL}:promote`, skill.promoteSkill, 'Share a skill with more readers; for reviewers'),
  skills('POST', `${SKILL}:use`, skill.useSkill, 'Run a skill'),
  wishes('GET', '', skill.listWantedSkills, 'List requested skills'),
  wishes('POST', '', skill.requestSkill, 'Request a missing skill'),
  wishes('GET', '/{name=wantedSkills}', skill.getWantedSkill, 'Get a requested skill'),
  wishes('POST', '/{name=wantedSkills}:withdraw', skill.withdrawWantedSkill, 'Withdraw the request for a skill'),
  agents('GET', '', agent.listAgents, 'List agents that have settings of their own'),
  agents('GET', '/{name=agents}', agent.getAgent, 'Get the settings of an agent'),
  agents('PATCH', '/{agent.name=agents}', agent.updateAgent, 'Change the settings of an agent; for reviewers'),
  tools('GET', '', tool.listTools, 'List tools with their schemas'),
  tools('POST', '/{tool}:call', tool.callTool, 'Call a tool'),
  worlds('GET', '', world.listWorlds, 'List worlds by name'),
  worlds('POST', '', world.createWorld, 'Make a world'),
  worlds('GET', '/{name=worlds}', world.getWorld, 'Get a world with its map'),
  worlds('DELETE', '/{name=worlds}', world.deleteWorld, 'Delete a world'),
  worlds('POST', '/{name=worlds}:move', world.moveInWorld, 'Make a move in a world'),
  runs('POST', '', run.runConsolidation, 'Start a consolidation'),
  runs('GET', '', run.listConsolidationRuns, 'List consolidations, newest first'),
  runs('GET', RUN, run.getConsolidationRun, 'Get a consolidation with its plan'),
  runs('POST', `${RUN}:undo`, run.undoConsolidation, 'Take back what a consolidation changed; for reviewers'),
  queues('GET', '', queue.listQueues, 'List queues; for operators'),
  queues('GET', '/{queue}/deadLetters', queue.listDeadLetters, 'List dead letters, newest first; for operators'),
  queues('POST', '/{queue}/deadLetters:redrive', queue.redriveDeadLetters, 'Put dead letters back to work; for operators'),
  below('/v1/audit')('GET', '', queue.listAudit, 'List who changed what, newest first; for reviewers'),
  tenants('GET', '', queue.listTenants, 'List tenants with what they use and their limits; for operators'),
  sandboxes('GET', '', sandbox.listSandboxes, 'List sandboxes, newest first'),
  sandboxes('POST', '', sandbox.createSandbox, 'Open a sandbox'),
  sandboxes('GET', SANDBOX, sandbox.getSandbox, 'Get a sandbox'),
  sandboxes('POST', `${SANDBOX}:renew`, sandbox.renewSandbox, 'Let a sandbox live longer'),
  sandboxes('POST', `${SANDBOX}:close`, sandbox.closeSandbox, 'End a sandbox'),
  sandboxes('POST', `${SANDBOX}:execute`, sandbox.execute, 'Run code and watch what it prints', 'events'),
  sandboxes('POST', `${SANDBOX}:cancel`, sandbox.cancelExecution, 'Stop a running execution'),
  sandboxes('POST', `${SANDBOX}:answerToolCall`, sandbox.answerToolCall, 'Answer a call of a tool by the code'),
  sandboxes('GET', `${SANDBOX}/files`, sandbox.listSandboxFiles, 'List files'),
  sandboxes('GET', `${SANDBOX}/files:search`, sandbox.searchSandboxFiles, 'Find lines of files that contain a text'),
  sandboxes('POST', `${SANDBOX}/files:upload`, sandbox.uploadFile, 'Upload a file; the body is the file', 'bytes'),
  sandboxes('GET', `${SANDBOX}/files:download`, sandbox.downloadFile, 'Download a file', 'bytes'),
  sandboxes('DELETE', `${SANDBOX}/files`, sandbox.deleteSandboxFile, 'Delete a file'),
];

const FIELD = /\{([\w.]+)(?:=(\w+))?\}/g;

export interface Match<P extends Place> {
  readonly route: P;
  readonly fields: Readonly<Record<string, string>>;
}

/** The route for a verb and path; null: there is none. */
export function matchRoute<P extends Place>(places: readonly P[], verb: string, path: string): Match<P> | null {
  for (const route of places.filter((place) => place.verb === verb)) {
    const fields = fieldsOf(route.path, path);
    if (fields !== null) return { route, fields };
  }
  return null;
}

function fieldsOf(pattern: string, path: string): Record<string, string> | null {
  // Names in collections have no colon, so a verb follows the colon.
  const expression = pattern.replaceAll(FIELD, (_all, _name, collection) => (collection === undefined ? '([^/]+)' : '([^/:]+)'));
  const [whole, ...values] = new RegExp(`^${expression}$`).exec(path) ?? [];
  if (whole === undefined) return null;
  try {
    const named = [...pattern.matchAll(FIELD)].map(([, name = '', collection], i) => {
      const value = decodeURIComponent(values[i] ?? '');
      return [name, collection === undefined ? value : `${collection}/${value}`];
    });
    return Object.fromEntries(named) as Record<string, string>;
  } catch {
    // A segment with invalid encoding names nothing.
    return null;
  }
}

/** A path as OpenAPI shows it: `/v1/skills/{name}:use`. */
export const shownPath = (path: string) => path.replaceAll(/\{(?:\w+\.)*(\w+)(?:=\w+)?\}/g, '{$1}');
