import { errorCode, type EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { SkillRequest, SkillVerify, verificationOf } from '@etude/contracts/queues';
import type { WantedSkill } from '@etude/contracts/skill-proof';
import type { AgentSettingsReader } from '@etude/domain/ports/agent-settings';
import type { Clock } from '@etude/domain/ports/clock';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { type ChatModel, chargedTo } from '@etude/domain/ports/model';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { refusalOf } from '@etude/domain/skills/life/call-graph';
import { findSkill } from '@etude/domain/skills/life/find-skill';
import { registerSkill } from '@etude/domain/skills/life/register-skill';
import { type AdmissionDeps, admitSkill } from '@etude/domain/skills/proof/admit-skill';
import { pinnedTo } from '@etude/domain/skills/proof/bundle-code';
import { inspectCode, problemTexts } from '@etude/domain/skills/proof/inspect-code';
import { requestedSkill, writeSkill, WrittenSkill } from '@etude/domain/skills/proof/write-skill';
import { isErased } from '@etude/memory/upkeep/erasure-marks';
import { counter } from '@etude/platform/metrics';
import type { StoredWantedSkill, WantedSkills, WishEnd } from '@etude/queue/agents/wanted-skills';
import type { JobHandler } from '@etude/queue/jobs/consumer';
import type { Producer } from '@etude/queue/jobs/producer';
import { z } from 'zod';

type VerifyDeps = Omit<AdmissionDeps, 'attempt' | 'requestVerification'>;

/** Verifies a skill. Each new version of a calling skill gets its own verification job. */
export function skillVerifyProcessor(
  producer: Producer,
  deps: VerifyDeps,
): JobHandler<typeof SkillVerify.payload, typeof SkillVerify.result> {
  const requestVerification = async (skill: Skill) => {
    await producer.add(SkillVerify, verificationOf(skill));
  };
  return async (payload, { attempt, signal }) => {
    const { status } = await admitSkill(payload, { ...deps, requestVerification, attempt }, signal);
    return { status };
  };
}

const ARCHITECT = 'architect';
const outcomes = counter({ name: 'etude_skill_requests_total', help: 'Requests for skills, by their outcome', labels: ['state'] });
const unusable = counter({ name: 'etude_skill_request_answers_unusable_total', help: 'Answers of the model without a usable skill' });

interface SkillRequestDeps {
  readonly wanted: WantedSkills;
  readonly model: ChatModel;
  readonly procedural: ProceduralMemory;
  readonly sandboxes: Sandboxes;
  readonly settings: AgentSettingsReader;
  readonly producer: Pick<Producer, 'add'>;
  readonly clock: Clock;
  /** Returns the result of a verification without storing it. */
  readonly check: (candidate: Skill, signal: AbortSignal) => Promise<{ readonly passed: boolean; readonly reason: string }>;
}

/** A skill written for a request. It is stored until it is registered, so that another worker of the job registers the same skill. */
const Draft = z.strictObject({ written: WrittenSkill, model: z.string().nullable(), scripted: z.boolean(), at: z.number().int() });
type Draft = z.infer<typeof Draft>;
type End = WishEnd & { readonly state: 'registered' | 'failed' };

/**
 * The skill architect: lets the model write a requested skill, and registers it as a candidate. After a crash the job runs again. It registers the
 * stored draft, or asks the model again if there is none. If all attempts fail, the reconciler marks the request.
 */
export function skillRequestProcessor(deps: SkillRequestDeps): JobHandler<typeof SkillRequest.payload, typeof SkillRequest.result> {
  return async ({ tenant, id }, { signal }) => {
    const stored = await deps.wanted.load(tenant, id);
    if (stored === null) return { state: 'failed' };
    const round = roundOf(stored);
    if (!(await deps.wanted.begin(round, stored.wanted.reason))) return { state: stateOf(await deps.wanted.get(tenant, id)) };
    const end = await fulfil(stored, deps, signal);
    const state = (await deps.wanted.end(round, end)) ? end.state : 'withdrawn';
    outcomes.inc({ state });
    return { state };
  };
}

const roundOf = ({ wanted: { tenant, id }, round }: StoredWantedSkill) => ({ tenant, id, round });
const stateOf = (wanted: WantedSkill | null) =>
  wanted?.state === 'registered' || wanted?.state === 'withdrawn' ? wanted.state : ('failed' as const);
const failed = (reason: string, scripted = false): End => ({ state: 'failed', reason, registered: null, scripted });

async function fulfil(stored: StoredWantedSkill, deps: SkillRequestDeps, signal: AbortSignal): Promise<End> {
  const { wanted, vouchedBy, draft: kept } = stored;
  const { tenant, agent, user, skill: name } = wanted;
  const there = await findSkill(deps.procedural, { tenant, agent, user }, name);
  if (there !== null)
    return {
      state: 'registered',
      reason: `version ${there.version} of the skill exists already`,
      registered: name,
      scripted: there.scripted,
    };
  const draft = kept === null ? await write(stored, deps, signal) : Draft.parse(JSON.parse(kept));
  if ('failure' in draft) return failed(draft.failure, draft.scripted);
  const first = await deps.wanted.keepDraft(roundOf(stored), JSON.stringify(draft));
  if (first === null) return failed('the request was erased or withdrawn while the skill was written');
  return register(wanted, vouchedBy, Draft.parse(JSON.parse(first)), deps);
}

async function write(
  stored: StoredWantedSkill,
  deps: SkillRequestDeps,
  signal: AbortSignal,
): Promise<Draft | { readonly failure: string; readonly scripted: boolean }> {
  const { wanted, vouchedBy } = stored;
  const at = deps.clock.now();
  const check = (written: WrittenSkill, aborted: AbortSignal) =>
    problemsOf(wanted, requestedSkill(wanted, written, { model: null, scripted: false, at, vouchedBy }), deps, aborted);
  const onFailure = async (failure: string, calls: number) => {
    unusable.inc();
    const reason = `answer ${calls} could not be used: ${failure.slice(0, 2_000)}`;
    return (await deps.wanted.begin(roundOf(stored), reason)) ? ('go_on' as const) : ('stop' as const);
  };
  const {
    data: written,
    failure,
    model,
    scripted,
  } = await writeSkill(wanted, { model: chargedTo(deps.model, wanted, 'write_skill'), check, onFailure }, signal);
  return written === null ? { failure, scripted } : { written, model, scripted, at };
}

async function problemsOf(wanted: WantedSkill, candidate: Skill, deps: SkillRequestDeps, signal: AbortSignal): Promise<readonly string[]> {
  const skill = await prepared(wanted, candidate, deps, signal);
  if (typeof skill === 'string') return [skill];
  const { passed, reason } = await deps.check(skill, signal);
  return passed ? [] : [reason];
}

/** The candidate, pinned to the skills that it calls, or the reason why it can't be registered. */
async function prepared(
  { tenant, agent, user, skill: name }: WantedSkill,
  candidate: Skill,
  { sandboxes, procedural }: SkillRequestDeps,
  signal?: AbortSignal,
): Promise<Skill | string> {
  const found = await inspectCode({ ...candidate, name }, { sandboxes, tenant, owner: { agent, user } }, signal);
  if ('problems' in found) return problemTexts(found.problems).join('; ');
  if (found.kind !== 'function') return found.note || `the skill is a ${found.kind}, not a function`;
  return pinnedTo(found.uses, candidate, procedural).catch(refusalOf);
}

async function register(wanted: WantedSkill, vouchedBy: string | null, draft: Draft, deps: SkillRequestDeps): Promise<End> {
  const { tenant, agent, skill: name } = wanted;
  const { procedural, producer } = deps;
  const { written, ...writer } = draft;
  const { settings } = await deps.settings.get(tenant, agent);
  try {
    const skill = await prepared(wanted, requestedSkill(wanted, written, { ...writer, vouchedBy }), deps);
    if (typeof skill === 'string') return failed(skill, draft.scripted);
    // The candidate has the time of the draft, so that no skill is stored for an owner erased since then.
    const stored = await registerSkill(skill, { by: ARCHITECT }, { procedural, settings });
    if (stored.status === 'rejected') return failed(`the same code was rejected: ${stored.statusReason}`, draft.scripted);
    if (stored.status === 'candidate') await producer.add(SkillVerify, verificationOf(stored));
    return { state: 'registered', reason: '', registered: name, scripted: draft.scripted };
  } catch (error) {
    if (isErased(error)) return failed('the owner of the skill was erased');
    const code = errorCode(error);
    if (code !== 'FAILED_PRECONDITION' && code !== 'INVALID_ARGUMENT') throw error;
    return failed((error as EtudeError).message, draft.scripted);
  }
}
