import { hash } from 'node:crypto';
import type { Episode, Experience, Scope } from '@etude/contracts/memory';
import { isVisible } from '@etude/contracts/visible-text';

export interface ToldExperience {
  readonly scope: Scope;
  readonly experience: Experience;
  readonly skillsUsed: readonly string[];
  readonly reflection: string;
  /** 0 to 1 */
  readonly importance: number;
  /** Distinguishes episodes with the same content. null: the same content of one owner is always one episode. */
  readonly key: string | null;
  /** ms since 1970 */
  readonly at: number;
}

const ERROR_SHARE_MAX = 0.3;

export function experienceEpisode({ scope, experience, skillsUsed, reflection, importance, key, at }: ToldExperience): Episode {
  const content = JSON.stringify([scope, experience, skillsUsed, reflection, ...(key === null ? [] : [key])]);
  const id = `x${hash('sha256', content).slice(0, 32)}`;
  const prompt = experience.context.join('\n');
  return {
    id,
    scope,
    taskId: id,
    rolloutId: id,
    prompt,
    fingerprint: '',
    evaluatorKind: 'none',
    entryPoint: null,
    code: null,
    summary: [...experience.context, ...experience.actions].join('\n'),
    reflection: isVisible(reflection) ? reflection : null,
    success: succeeded(experience),
    importance,
    skillsUsed: [...skillsUsed],
    experience,
    attempts: 1,
    model: null,
    scripted: false,
    createdAt: at,
  };
}

export function succeeded({ outcomes }: Pick<Experience, 'outcomes'>): boolean {
  const errors = outcomes.filter((outcome) => outcome.type === 'action_error').length;
  return outcomes.length > 0 && errors / outcomes.length < ERROR_SHARE_MAX;
}
