import { hash } from 'node:crypto';
import type { FoundItem, ItemShows } from '@etude/contracts/memory';
import { successEffect } from './effects.js';

/** The probability for items that seem to harm, so that it is soon known whether they do. */
const IN_DOUBT = 0.5;
/** Rollouts with and without an item from which its estimated effect raises doubt. */
const SHOWN_MIN = 10;
const WITHHELD_MIN = 3;
const DRAWS = 2 ** 32;

/** Unique within a tenant. */
export function showKey({ owner: { agent, user }, kind, id }: Omit<FoundItem, 'layer'>): string {
  return JSON.stringify([agent, user, kind, id]);
}

/** Whether a rollout isn't shown an item. The draw depends only on rollout, item and probability, so that a replay draws the same. */
export function isWithheld(rolloutId: string, item: FoundItem, probability: number): boolean {
  return Number.parseInt(hash('sha256', `${rolloutId}\n${showKey(item)}`).slice(0, 8), 16) < probability * DRAWS;
}

/** The probability with which an item is withheld. An item whose estimated effect on success is below zero is withheld half of the time. */
export function probabilityOf(sides: Pick<ItemShows, 'shown' | 'withheld'> | null, standard: number): number {
  if (sides === null || sides.shown.n < SHOWN_MIN || sides.withheld.n < WITHHELD_MIN) return standard;
  return (successEffect(sides)?.estimate ?? 0) < 0 ? Math.max(standard, IN_DOUBT) : standard;
}
