import type { Skill } from '@etude/contracts/memory';
import type { SkillOffer } from '../../ports/skill-registry.js';
import { afterOffer, UNUSED } from '../life/usage.js';

/**
 * A skill behind what it was offered at once: one offer more, where there was any. A load moves when it was used last, so that pruning
 * keeps what is used in no other way; it is no use, since nobody tells whether the code calls what it loaded.
 */
export function afterOffers(skill: Skill, offers: readonly SkillOffer[]): Skill {
  if (offers.length === 0) return skill;
  const offered = afterOffer(skill);
  const loadedAt = Math.max(...offers.map((offer) => offer.loadedAt ?? 0));
  if (loadedAt === 0) return offered;
  const usage = offered.usage ?? UNUSED;
  return { ...offered, usage: { ...usage, lastUsedAt: Math.max(usage.lastUsedAt ?? 0, loadedAt) } };
}
