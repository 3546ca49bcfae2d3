import type { DescField, DescMethod, DescService } from '@bufbuild/protobuf';
import { SERVICES } from '@etude/contracts/grpc';
import { bytesMaxOf, MIB } from '../calls/calls.js';

/**
 * Formats of a body. `json`: one message each way. `lines`: JSON Lines, in the field `lines` of the messages.
 * `bytes`: the file itself, each way. `archive`: a packed folder. Both leave other fields to the query. `events`: JSON, answered by
 * server-sent events.
 */
export type Body = 'json' | 'lines' | 'events' | 'bytes' | 'archive';

export interface Place {
  readonly verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** A segment in braces is a field of the request. `{name=skills}` becomes the field `name` with the prefix "skills/". */
  readonly path: string;
  readonly summary: string;
  readonly bytesMax: number;
}

export interface Route extends Place {
  readonly method: DescMethod;
  readonly body: Body;
}

/** The field with the first message of an upload. The query gives the fields of this message. */
export const headOf = (method: DescMethod): DescField => method.input.fields.find(({ name }) => name === 'head' || name === 'header')!;

const STREAMED_BYTES_MAX: Readonly<Record<string, number>> = { ImportDocument: 32 * MIB, ImportSkill: 64 * MIB, UploadFile: 64 * MIB };

const below =
  <S extends DescService>(root: string, { method: methods }: S) =>
  (verb: Place['verb'], path: string, name: keyof S['method'], summary: string, body: Body = 'json'): Route => {
    const method = (methods as S['method'])[name]!;
    return { verb, path: `${root}${path}`, method, summary, body, bytesMax: STREAMED_BYTES_MAX[method.name] ?? bytesMaxOf(method) };
  };

const memory = below('/v1/memory', SERVICES.memory);
const skills = below('/v1/skills', SERVICES.skills);
const wishes = below('/v1/wantedSkills', SERVICES.skills);
const agents = below('/v1/agents', SERVICES.agents);
const tools = below('/v1/tools', SERVICES.tools);
const tasks = below('/v1/tasks', SERVICES.tasks);
const worlds = below('/v1/worlds', SERVICES.worlds);
const runs = below('/v1/consolidationRuns', SERVICES.consolidation);
const queues = below('/v1/queues', SERVICES.queues);
const audit = below('/v1/audit', SERVICES.queues);
const tenants = below('/v1/tenants', SERVICES.queues);
const sandboxes = below('/v1/sandboxes', SERVICES.sandboxes);
const SKILL = '/{name=skills}';
const TASK = '/{name=tasks}';
const RUN = '/{name=consolidationRuns}';
const SANDBOX = '/{name=sandboxes}';

/** The paths of `etude.v1` calls. A new call only needs a line here. */
export const ROUTES: readonly Route[] = [
  tasks('POST', '', 'submitTask', 'Submit a task'),
  tasks('GET', '', 'listTasks', 'List tasks, newest first'),
  tasks('GET', ':usage', 'getUsage', 'Get the costs of model calls'),
  tasks('GET', TASK, 'getTask', 'Get a task'),
  tasks('POST', `${TASK}:cancel`, 'cancelTask', 'Stop a task'),
  tasks('POST', `${TASK}:answer`, 'answerTask', 'Answer the open question of a task'),
  tasks('POST', `${TASK}:wait`, 'waitTask', 'Wait until a task is finished or asks a question'),
  tasks('GET', `${TASK}:watch`, 'watchTask', 'Watch the events of a task', 'events'),
  tasks('GET', `${TASK}:step`, 'getStep', 'Show the result of a step'),
  tasks('GET', `${TASK}:explain`, 'explainStep', 'Show what the model was asked in a step'),
  memory('POST', ':search', 'searchMemory', 'Search memory by meaning and by words'),
  memory('POST', ':recall', 'recall', 'Recall facts, experiences and procedures for a context'),
  memory('GET', '/stats', 'getMemoryStats', 'Count the records in memory'),
  memory('GET', '/lift', 'getLift', 'Compare how rollouts end with and without memory'),
  memory('GET', '/episodes', 'listRecentEpisodes', 'List episodes, newest first'),
  memory('POST', '/episodes', 'storeEpisode', 'Store an episode of an outside agent'),
  memory('POST', '/facts', 'storeFact', 'Store a fact'),
  memory('PATCH', '/facts/{id}', 'updateFact', 'Change the text or the confidence of a fact'),
  memory('GET', '/facts/{id}/history', 'listFactHistory', 'List a fact and the facts that it replaced'),
  memory('POST', '/facts/{id}:undo', 'undoFactDecision', 'Undo the last decision about two facts'),
  memory('POST', '/procedures', 'storeProcedure', 'Store a procedure in words'),
  memory('GET', '/documents', 'listDocuments', 'List documents'),
  memory('POST', '/documents', 'importDocument', 'Import a document; the body is the file', 'bytes'),
  memory('DELETE', '/documents/{id}', 'deleteDocument', 'Delete a document with its chunks'),
  memory('GET', '/conversations', 'listConversations', 'List conversations'),
  memory('POST', '/conversations', 'addConversation', 'Add messages to a conversation'),
  memory('GET', '/conversations/{id}/turns', 'listTurns', 'List the messages of a conversation, in order'),
  memory('DELETE', '/conversations/{id}', 'deleteConversation', 'Delete a conversation with its turns'),
  memory('GET', '/records/{layer}/{id}', 'getMemory', 'Get a record, whole'),
  memory('DELETE', '/records/{layer}/{id}', 'deleteMemory', 'Erase a record with its parts'),
  memory('GET', '/records', 'listMemory', 'List records of one kind, newest first'),
  memory('GET', ':export', 'exportMemory', 'Export memory as JSON Lines', 'lines'),
  memory('POST', ':import', 'importMemory', 'Import lines of an export', 'lines'),
  memory('POST', ':archive', 'archiveMemory', 'Archive records of little worth'),
  memory('POST', ':restore', 'restoreMemory', 'Bring archived records back'),
  memory('POST', ':erase', 'eraseMemory', 'Erase every trace of an agent, a user or the tenant'),
  memory('GET', '/erasures/{id}', 'getErasure', 'Get the receipt of an erasure'),
  memory('POST', ':reembed', 'startReembedding', 'Move all vectors to another embedder; for operators'),
  memory('POST', ':stopReembedding', 'stopReembedding', 'Stop the re-embedding; for operators'),
  memory('GET', '/reembedding', 'getReembedding', 'Get the progress of the re-embedding; for operators'),
  memory('POST', ':reconcile', 'reconcileMemory', 'Repair half-written records; for operators'),
  skills('GET', '', 'listSkills', 'List skills by name'),
  skills('POST', '', 'registerSkill', 'Register a skill, or a new version of one'),
  skills('POST', ':check', 'checkSkill', 'Verify a draft without storing it'),
  skills('POST', ':search', 'searchSkills', 'Search active skills by meaning and by words'),
  skills('POST', ':load', 'loadFunctions', 'Get code that defines functions and their dependencies'),
  skills('POST', ':import', 'importSkill', 'Import an archive of skills; the body is the archive', 'archive'),
  skills('POST', ':prune', 'pruneSkills', 'Archive unused, failing or superseded skills'),
  skills('POST', ':undoPrune', 'undoPrune', 'Undo a pruning'),
  skills('POST', ':revokeSource', 'revokeSource', 'Withdraw skills and facts learned from a source'),
  skills('GET', ':stats', 'getSkillStats', 'Count the uses and failures of skills'),
  skills('GET', ':categories', 'listSkillCategories', 'List categories of skills'),
  skills('GET', SKILL, 'getSkill', 'Get a skill'),
  skills('GET', `${SKILL}/versions`, 'listSkillVersions', 'List all versions of a skill, newest first'),
  skills('GET', `${SKILL}:diff`, 'diffSkill', 'Show what changed between two versions'),
  skills('GET', `${SKILL}:review`, 'getSkillReview', 'Get the review of a skill; for reviewers'),
  skills('GET', `${SKILL}:export`, 'exportSkill', 'Get a skill as a folder of the Agent Skills format'),
  skills('POST', `${SKILL}:verify`, 'verifySkill', 'Verify a skill again'),
  skills('POST', `${SKILL}:approve`, 'approveSkill', 'Approve a skill; for reviewers'),
  skills('POST', `${SKILL}:reject`, 'rejectSkill', 'Reject a skill; for reviewers'),
  skills('POST', `${SKILL}:rollback`, 'rollbackSkill', 'Bring an earlier version back; for reviewers'),
  skills('POST', `${SKILL}:deprecate`, 'deprecateSkill', 'Deprecate a skill; for reviewers'),
  skills('POST', `${SKILL}:archive`, 'archiveSkill', 'Archive a skill; for reviewers'),
  skills('POST', `${SKILL}:restore`, 'restoreSkill', 'Bring an archived skill back; for reviewers'),
  skills('POST', `${SKILL}:promote`, 'promoteSkill', 'Share a skill with more readers; for reviewers'),
  skills('POST', `${SKILL}:use`, 'useSkill', 'Run a skill'),
  wishes('GET', '', 'listWantedSkills', 'List requested skills'),
  wishes('POST', '', 'requestSkill', 'Request a missing skill'),
  wishes('GET', '/{name=wantedSkills}', 'getWantedSkill', 'Get a requested skill'),
  wishes('POST', '/{name=wantedSkills}:withdraw', 'withdrawWantedSkill', 'Withdraw the request for a skill'),
  agents('GET', '', 'listAgents', 'List agents that have settings of their own'),
  agents('GET', '/{name=agents}', 'getAgent', 'Get the settings of an agent'),
  agents('PATCH', '/{agent.name=agents}', 'updateAgent', 'Change the settings of an agent; for reviewers'),
  tools('GET', '', 'listTools', 'List tools with their schemas'),
  tools('POST', '/{tool}:call', 'callTool', 'Call a tool'),
  worlds('GET', '', 'listWorlds', 'List worlds by name'),
  worlds('POST', '', 'createWorld', 'Make a world'),
  worlds('GET', '/{name=worlds}', 'getWorld', 'Get a world with its map'),
  worlds('DELETE', '/{name=worlds}', 'deleteWorld', 'Delete a world'),
  worlds('POST', '/{name=worlds}:move', 'moveInWorld', 'Make a move in a world'),
  runs('POST', '', 'runConsolidation', 'Start a consolidation'),
  runs('GET', '', 'listConsolidationRuns', 'List consolidations, newest first'),
  runs('GET', RUN, 'getConsolidationRun', 'Get a consolidation with its plan'),
  runs('POST', `${RUN}:undo`, 'undoConsolidation', 'Undo the changes of a consolidation; for reviewers'),
  queues('GET', '', 'listQueues', 'List queues; for operators'),
  queues('GET', '/{queue}/deadLetters', 'listDeadLetters', 'List dead letters, newest first; for operators'),
  queues('POST', '/{queue}/deadLetters:redrive', 'redriveDeadLetters', 'Return dead letters to their queue; for operators'),
  audit('GET', '', 'listAudit', 'List who changed what, newest first; for reviewers'),
  tenants('GET', '', 'listTenants', 'List tenants with what they use and their limits; for operators'),
  sandboxes('GET', '', 'listSandboxes', 'List sandboxes, newest first'),
  sandboxes('POST', '', 'createSandbox', 'Open a sandbox'),
  sandboxes('GET', SANDBOX, 'getSandbox', 'Get a sandbox'),
  sandboxes('POST', `${SANDBOX}:renew`, 'renewSandbox', 'Extend the lifetime of a sandbox'),
  sandboxes('POST', `${SANDBOX}:close`, 'closeSandbox', 'End a sandbox'),
  sandboxes('POST', `${SANDBOX}:execute`, 'execute', 'Run code and watch what it prints', 'events'),
  sandboxes('POST', `${SANDBOX}:cancel`, 'cancelExecution', 'Stop a running execution'),
  sandboxes('POST', `${SANDBOX}:answerToolCall`, 'answerToolCall', 'Answer a tool call that the code made'),
  sandboxes('GET', `${SANDBOX}/files`, 'listSandboxFiles', 'List files'),
  sandboxes('GET', `${SANDBOX}/files:search`, 'searchSandboxFiles', 'Find lines of files that contain a text'),
  sandboxes('POST', `${SANDBOX}/files:upload`, 'uploadFile', 'Upload a file; the body is the file', 'bytes'),
  sandboxes('GET', `${SANDBOX}/files:download`, 'downloadFile', 'Download a file', 'bytes'),
  sandboxes('DELETE', `${SANDBOX}/files`, 'deleteSandboxFile', 'Delete a file'),
];

const FIELD = /\{([\w.]+)(?:=(\w+))?\}/g;

export interface Match<P extends Place> {
  readonly route: P;
  readonly fields: Readonly<Record<string, string>>;
}

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
