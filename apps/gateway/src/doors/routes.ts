import type { DescMethod } from '@bufbuild/protobuf';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';

/**
 * How bodies travel. `json`: one message each way. `lines`: JSON Lines, in the field `lines` of the messages. `bytes`: the body is the
 * document itself, `archive`: a packed folder; what is said about either is in the query.
 */
export type Body = 'json' | 'lines' | 'bytes' | 'archive';

export interface Route {
  readonly verb: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Segments in braces are fields of the request, by their path in it; `{name=skills}` is the field with "skills/" before it. */
  readonly path: string;
  readonly method: DescMethod;
  /** What it does, in a few words. */
  readonly summary: string;
  readonly body: Body;
  /** Of the body. */
  readonly bytesMax: number;
}

const MIB = 1024 * 1024;
/** Of calls whose bodies are larger than those of others, by the name of the call. */
const BYTES_MAX: Readonly<Record<string, number>> = {
  StoreEpisode: 2 * MIB,
  StoreProcedure: 4 * MIB,
  ImportMemory: 15 * MIB,
  // One more than a document may have, so that its own refusal is what its caller reads.
  ImportDocument: 32 * MIB + 1,
  RegisterSkill: 4 * MIB,
  CheckSkill: 4 * MIB,
  ImportSkill: 64 * MIB + 1,
};

type Line = (verb: Route['verb'], path: string, method: DescMethod, summary: string, body?: Body) => Route;

const below =
  (root: string): Line =>
  (verb, path, method, summary, body = 'json') => ({
    verb,
    path: `${root}${path}`,
    method,
    summary,
    body,
    bytesMax: BYTES_MAX[method.name] ?? MIB,
  });

const memory = below('/v1/memory');
const skills = below('/v1/skills');
const wishes = below('/v1/wantedSkills');
const agents = below('/v1/agents');
const tools = below('/v1/tools');
const { method: call } = Memory;
const { method: skill } = Skills;
const SKILL = '/{name=skills}';

/** Plain paths for the calls of `etude.v1`. A new call gets its line here and nothing else. */
export const ROUTES: readonly Route[] = [
  memory('POST', ':search', call.searchMemory, 'Search memory by meaning and by words'),
  memory('POST', ':recall', call.recall, 'Recall facts, experiences and procedures for a context'),
  memory('GET', '/stats', call.getMemoryStats, 'Count what is in memory'),
  memory('GET', '/episodes', call.listRecentEpisodes, 'List episodes, newest first'),
  memory('POST', '/episodes', call.storeEpisode, 'Store an episode of an outside agent'),
  memory('POST', '/facts', call.storeFact, 'Store a fact'),
  memory('PATCH', '/facts/{id}', call.updateFact, 'Change the text or the confidence of a fact'),
  memory('GET', '/facts/{id}/history', call.listFactHistory, 'List a fact and those that it took the place of'),
  memory('POST', '/procedures', call.storeProcedure, 'Store a procedure in words'),
  memory('GET', '/documents', call.listDocuments, 'List documents'),
  memory('POST', '/documents', call.importDocument, 'Import a document; the body is the file', 'bytes'),
  memory('DELETE', '/documents/{id}', call.deleteDocument, 'Delete a document with its chunks'),
  memory('GET', '/records/{layer}/{id}', call.getMemory, 'Get a record, whole'),
  memory('GET', ':export', call.exportMemory, 'Export memory as JSON Lines', 'lines'),
  memory('POST', ':import', call.importMemory, 'Import lines of an export', 'lines'),
  memory('POST', ':archive', call.archiveMemory, 'Take what has little worth out of retrieval'),
  memory('POST', ':restore', call.restoreMemory, 'Bring archived records back'),
  memory('POST', ':erase', call.eraseMemory, 'Erase every trace of an agent, a user or the tenant'),
  memory('GET', '/erasures/{id}', call.getErasure, 'Get the receipt of an erasure'),
  memory('POST', ':reembed', call.startReembedding, 'Fill the vectors of another embedder; for operators'),
  memory('POST', ':stopReembedding', call.stopReembedding, 'Stop the re-embedding; for operators'),
  memory('GET', '/reembedding', call.getReembedding, 'Say how far the re-embedding is; for operators'),
  memory('POST', ':reconcile', call.reconcileMemory, 'Look for half-written records and mend them; for operators'),
  skills('GET', '', skill.listSkills, 'List skills by name'),
  skills('POST', '', skill.registerSkill, 'Register a skill, or a new version of one'),
  skills('POST', ':check', skill.checkSkill, 'Say what verification finds, and store nothing'),
  skills('POST', ':search', skill.searchSkills, 'Search active skills by meaning and by words'),
  skills('POST', ':load', skill.loadFunctions, 'Get code that defines functions with all that they need'),
  skills('POST', ':import', skill.importSkill, 'Import an archive of skills; the body is the archive', 'archive'),
  skills('POST', ':prune', skill.pruneSkills, 'Archive what is unused, failing or superseded'),
  skills('POST', ':undoPrune', skill.undoPrune, 'Take back what a pruning archived'),
  skills('POST', ':revokeSource', skill.revokeSource, 'Withdraw what was learned from a source'),
  skills('GET', ':stats', skill.getSkillStats, 'Count how skills do'),
  skills('GET', ':categories', skill.listSkillCategories, 'List categories of skills'),
  skills('GET', SKILL, skill.getSkill, 'Get a skill'),
  skills('GET', `${SKILL}/versions`, skill.listSkillVersions, 'List all versions of a skill, newest first'),
  skills('GET', `${SKILL}:diff`, skill.diffSkill, 'Show what changed between two versions'),
  skills('GET', `${SKILL}:review`, skill.getSkillReview, 'Get what a reviewer needs; for reviewers'),
  skills('GET', `${SKILL}:export`, skill.exportSkill, 'Get a skill as a folder of the Agent Skills format'),
  skills('POST', `${SKILL}:verify`, skill.verifySkill, 'Verify a skill again'),
  skills('POST', `${SKILL}:approve`, skill.approveSkill, 'Approve a skill; for reviewers'),
  skills('POST', `${SKILL}:reject`, skill.rejectSkill, 'Reject a skill; for reviewers'),
  skills('POST', `${SKILL}:rollback`, skill.rollbackSkill, 'Bring an earlier version back; for reviewers'),
  skills('POST', `${SKILL}:deprecate`, skill.deprecateSkill, 'Take a skill out of use; for reviewers'),
  skills('POST', `${SKILL}:archive`, skill.archiveSkill, 'Take a skill out of sight; for reviewers'),
  skills('POST', `${SKILL}:restore`, skill.restoreSkill, 'Bring an archived skill back; for reviewers'),
  skills('POST', `${SKILL}:promote`, skill.promoteSkill, 'Share a skill with more readers; for reviewers'),
  skills('POST', `${SKILL}:use`, skill.useSkill, 'Run a skill'),
  wishes('GET', '', skill.listWantedSkills, 'List skills that were asked for'),
  wishes('POST', '', skill.requestSkill, 'Ask for a skill that is missing'),
  wishes('GET', '/{name=wantedSkills}', skill.getWantedSkill, 'Get a skill that was asked for'),
  wishes('POST', '/{name=wantedSkills}:withdraw', skill.withdrawWantedSkill, 'Take back what was asked for'),
  agents('GET', '', Agents.method.listAgents, 'List agents that have settings of their own'),
  agents('GET', '/{name=agents}', Agents.method.getAgent, 'Get the settings of an agent'),
  agents('PATCH', '/{agent.name=agents}', Agents.method.updateAgent, 'Change the settings of an agent; for reviewers'),
  tools('GET', '', Tools.method.listTools, 'List tools with their schemas'),
  tools('POST', '/{tool}:call', Tools.method.callTool, 'Call a tool'),
];

export interface Match {
  readonly route: Route;
  readonly fields: Readonly<Record<string, string>>;
}

/** null: no such path. A path that is there with other verbs answers those. */
export function matchRoute(verb: string, path: string): Match | { readonly allowed: readonly string[] } | null {
  const found = ROUTES.flatMap((route) => {
    const fields = fieldsOf(route.path, path);
    return fields === null ? [] : [{ route, fields }];
  });
  if (found.length === 0) return null;
  return found.find(({ route }) => route.verb === verb) ?? { allowed: found.map(({ route }) => route.verb) };
}

/** A segment of a pattern: the field, what goes before its value, and what follows the braces. */
const FIELD = /^\{([\w.]+)(?:=(\w+))?\}(:\w+)?$/;

function fieldsOf(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const fields: Record<string, string> = {};
  for (const [i, segment] of wanted.entries()) {
    const value = given[i] ?? '';
    const field = FIELD.exec(segment);
    if (field === null) {
      if (segment !== value) return null;
      continue;
    }
    const [, name = '', collection, verb = ''] = field;
    // Names in a collection hold no colon, so what follows one is a verb.
    if (!value.endsWith(verb) || (verb === '' && collection !== undefined && value.includes(':'))) return null;
    const text = decoded(value.slice(0, value.length - verb.length));
    if (text === null || text === '') return null;
    fields[name] = collection === undefined ? text : `${collection}/${text}`;
  }
  return fields;
}

/** As a description of the interface shows it: `/v1/skills/{name}:use`. */
export const shownPath = (path: string) => path.replaceAll(/\{(?:\w+\.)*(\w+)(?:=\w+)?\}/g, '{$1}');

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
