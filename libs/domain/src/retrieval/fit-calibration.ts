import { areAnchors, type CosineAnchors } from './calibration.js';
import type { LabelledPair } from './pairs/labelled-pair.js';

/** A pair with what a model says about it. */
export interface ScoredPair {
  readonly same: LabelledPair['same'];
  readonly cosine: number;
}

/** Anchors that are closer than this tell nothing apart. */
const GAP = 0.02;
const UNRELATED_SHARE = 0.95;
const SAME_TASK = 0.7;
const SAME_WORDS = 0.9;

/** @param values not empty @param share 0 to 1; linear between the two nearest */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const [low = 0, high = low] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return low + (high - low) * (place - Math.floor(place));
}

const share = (values: readonly number[], keep: (value: number) => boolean) => values.filter(keep).length / values.length;

/** The cut that keeps most of `above` above and most of `below` below, whatever their numbers; the middle of the gap it lies in. */
function bestCut(below: readonly number[], above: readonly number[]): number {
  const cosines = [...below, ...above].toSorted((a, b) => a - b);
  const cuts = cosines.slice(1).map((cosine, i) => (cosine + (cosines[i] ?? cosine)) / 2);
  const right = (cut: number) => share(below, (value) => value < cut) + share(above, (value) => value >= cut);
  return cuts.reduce((best, cut) => (right(cut) > right(best) ? cut : best), cuts[0] ?? 0);
}

/**
 * The anchors that judge most pairs right.
 *
 * @param unrelated cosines of texts that have nothing to do with each other
 * @returns null where the model tells too little apart, or a kind of pair is missing: then there is nothing to fit
 */
export function fitCalibration(scored: readonly ScoredPair[], unrelated: readonly number[]): CosineAnchors | null {
  const of = (...kinds: ReadonlyArray<LabelledPair['same']>) =>
    scored.filter(({ same }) => kinds.includes(same)).map(({ cosine }) => cosine);
  const [no, task, words] = [of('no'), of('task'), of('words')];
  if ([no, task, words, unrelated].some((group) => group.length === 0)) return null;
  const sameTask = bestCut(no, [...task, ...words]);
  const sameWords = Math.min(0.99, Math.max(sameTask + GAP, bestCut(task, words)));
  const anchors = { unrelated: Math.min(Math.max(0, quantile(unrelated, UNRELATED_SHARE)), sameTask - GAP), sameTask, sameWords };
  return areAnchors(anchors) ? anchors : null;
}

/** What a calibrated similarity says about a pair. */
export function judged(similarity: number): LabelledPair['same'] {
  if (similarity >= SAME_WORDS) return 'words';
  return similarity >= SAME_TASK ? 'task' : 'no';
}

/** How many pairs are judged as people judged them: of three kinds, and of the two that decide whether something is the same. */
export function countRight(scored: readonly ScoredPair[], calibrate: (cosine: number) => number) {
  const kinds = scored.filter(({ same, cosine }) => judged(calibrate(cosine)) === same).length;
  const sameness = scored.filter(({ same, cosine }) => (judged(calibrate(cosine)) === 'no') === (same === 'no')).length;
  return { pairs: scored.length, kinds, sameness };
}
