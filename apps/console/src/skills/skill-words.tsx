import { type Skill, SkillScope, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Badge, percent, type Tone } from '../ui/text.js';

const TONES: Partial<Record<SkillStatus, Tone>> = {
  [SkillStatus.ACTIVE]: 'good',
  [SkillStatus.PENDING_REVIEW]: 'warn',
  [SkillStatus.REJECTED]: 'bad',
  [SkillStatus.CANDIDATE]: 'busy',
};

export const statusWord = (status: SkillStatus) => (SkillStatus[status] ?? 'unknown').toLowerCase().replaceAll('_', ' ');

export const Status = ({ status }: { readonly status: SkillStatus }) => <Badge tone={TONES[status] ?? 'plain'}>{statusWord(status)}</Badge>;

export const scopeWord = (scope: SkillScope) => (SkillScope[scope] ?? '').toLowerCase();

export const skillId = ({ name }: Pick<Skill, 'name'>) => name.slice('skills/'.length);

type Owned = Pick<Skill, 'name' | 'agent' | 'user'>;

/** Names are unique per owner, so an address names the owner too. */
export const ownerOf = ({ agent, user }: Pick<Skill, 'agent' | 'user'>) => ({ agent, user });

export function placeOfSkill(skill: Owned, below: 'skills' | 'review' = 'skills', version?: number): string {
  const entries = Object.entries({ ...ownerOf(skill), version: version ? String(version) : '' }).filter(([, value]) => value !== '');
  const query = new URLSearchParams(entries).toString();
  return `/${below}/${skillId(skill)}${query && `?${query}`}`;
}

/** How often a skill was offered, used and successful, and how often the task fell back to the model. */
export const NUMBERS = [
  ['Offered', (skill: Skill) => skill.offeredCount],
  ['Used', (skill: Skill) => skill.usedCount],
  ['Succeeded', (skill: Skill) => (skill.usedCount === 0n ? '' : percent(skill.successRate))],
  ['Fell back', (skill: Skill) => skill.fellBackCount],
] as const;

/** Whether tests may be shown. Tests made from a task's cases are not shown, because the cases may be hidden. */
export const areTestsOpen = ({ origin }: Pick<Skill, 'origin'>) => ['person', 'tool', 'import', 'request'].includes(origin);
