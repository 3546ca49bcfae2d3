import { EtudeError } from '@etude/contracts/errors';
import type { StoreEpisodeRequest } from '@etude/contracts/gen/etude/v1/memory_pb';
import { isDeeper } from '@etude/contracts/json';
import { Experience, type Scope } from '@etude/contracts/memory';
import { isVisible } from '@etude/contracts/visible-text';
import type { ToldExperience } from '@etude/domain/experience/experience-episode';
import { z } from 'zod';
import { optionalRequestId } from '../wire/resource-name.js';
import { invalidField, parseField, refuseAny } from '../wire/validation.js';

/** Of all that an episode tells, in UTF-8; outcomes as JSON. */
const EPISODE_BYTES_MAX = 1024 * 1024;
/** Within a record of a list of hits it stays within the 100 messages that decoders of protobuf follow, three for each object. */
const OUTCOME_DEPTH_MAX = 24;

const Reflection = z.string().max(100_000);
const SkillsUsed = z.array(z.string().trim().min(1).max(200)).max(1_000);
const Importance = z.number().min(0).max(1).default(0.5);

/** @throws EtudeError INVALID_ARGUMENT naming the field, PAYLOAD_TOO_LARGE for more text than an episode may have */
export function toldEpisode(request: StoreEpisodeRequest, scope: Scope, at: number): ToldExperience {
  const { context, actions, outcomes, skillsUsed, reflection } = request;
  const told = {
    scope,
    experience: parseField(Experience, { context, actions, outcomes }, ''),
    skillsUsed: parseField(SkillsUsed, skillsUsed, 'skills_used'),
    reflection: parseField(Reflection, reflection, 'reflection'),
    importance: parseField(Importance, request.importance, 'importance'),
    key: optionalRequestId(request.requestId),
    at,
  };
  if (!context.some(isVisible)) throw invalidField('context', 'must tell something; there is nothing to see in it');
  refuseDeep(outcomes);
  refuseLong([...context, ...actions, reflection, ...skillsUsed, ...outcomes.map((outcome) => JSON.stringify(outcome))]);
  return told;
}

function refuseDeep(outcomes: readonly unknown[]): void {
  const description = `is nested deeper than ${OUTCOME_DEPTH_MAX} lists and objects; make it flatter, or give what is inside as text`;
  refuseAny(outcomes.flatMap((outcome, i) => (isDeeper(outcome, OUTCOME_DEPTH_MAX) ? [{ field: `outcomes[${i}]`, description }] : [])));
}

function refuseLong(texts: readonly string[]): void {
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes <= EPISODE_BYTES_MAX) return;
  throw new EtudeError(
    'PAYLOAD_TOO_LARGE',
    `An episode may tell ${EPISODE_BYTES_MAX} bytes in context, actions, outcomes, skills_used and reflection together; this one has ${bytes}. Shorten it, or store it as several episodes.`,
  );
}
