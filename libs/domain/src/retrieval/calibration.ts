/** Two texts and how people judged them: nearly the same words, the same task in other words, or neither. */
export interface LabelledPair {
  readonly a: string;
  readonly b: string;
  readonly same: 'words' | 'task' | 'no';
}

/** Cosine of the angle between two vectors. 0 if one of them is zero. */
export function cosineOf(a: Float32Array, b: Float32Array): number {
  let [dot, aa, bb] = [0, 0, 0];
  for (const [i, value] of a.entries()) {
    const other = b[i] ?? 0;
    dot += value * other;
    aa += value * value;
    bb += other * other;
  }
  return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa * bb);
}

/** Three raw cosines of one model with a known meaning. They rise strictly. */
export interface CosineAnchors {
  /** 95 of 100 pairs of unrelated texts have a lower cosine. It is calibrated to 0.3. */
  readonly unrelated: number;
  /** Means "probably the same task". It is calibrated to 0.7. */
  readonly sameTask: number;
  /** Means "nearly the same words". It is calibrated to 0.9. */
  readonly sameWords: number;
}

const UNRELATED = 0.3;
const SAME_TASK = 0.7;
const SAME_WORDS = 0.9;

export function calibration({ unrelated, sameTask, sameWords }: CosineAnchors): (cosine: number) => number {
  return through([
    [0, 0],
    [unrelated, UNRELATED],
    [sameTask, SAME_TASK],
    [sameWords, SAME_WORDS],
    [1, 1],
  ]);
}

/** Interpolates linearly between points, which are sorted by x. Outside of the points, the nearest end counts. NaN counts as too low. */
export function through(points: ReadonlyArray<readonly [number, number]>): (x: number) => number {
  const [lowest = [0, 0]] = points;
  const highest = points.at(-1) ?? lowest;
  return (x) => {
    if (!(x > lowest[0])) return lowest[1];
    const above = points.findIndex(([raw]) => x < raw);
    const [rawHigh, high] = points[above] ?? highest;
    const [rawLow, low] = points[above - 1] ?? lowest;
    return above === -1 ? high : low + ((x - rawLow) / (rawHigh - rawLow)) * (high - low);
  };
}

export const areAnchors = ({ unrelated, sameTask, sameWords }: CosineAnchors) =>
  unrelated >= 0 && unrelated < sameTask && sameTask < sameWords && sameWords <= 1;

export interface ScoredPair {
  readonly same: LabelledPair['same'];
  readonly cosine: number;
}

const GAP = 0.02;
const UNRELATED_SHARE = 0.95;

/** The value below which this share of `values` lies, interpolated linearly. @param values at least one value @param share 0 to 1 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const [low = 0, high = low] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return low + (high - low) * (place - Math.floor(place));
}

const share = (values: readonly number[], keep: (value: number) => boolean) => values.filter(keep).length / values.length;

function bestCut(below: readonly number[], above: readonly number[]): number {
  const cosines = [...below, ...above].toSorted((a, b) => a - b);
  const cuts = cosines.slice(1).map((cosine, i) => (cosine + (cosines[i] ?? cosine)) / 2);
  const right = (cut: number) => share(below, (value) => value < cut) + share(above, (value) => value >= cut);
  return cuts.reduce((best, cut) => (right(cut) > right(best) ? cut : best), cuts[0] ?? 0);
}

/**
 * Finds the anchors with which most pairs are judged in the same way as by people.
 *
 * @param unrelated cosines of unrelated texts
 * @returns null if the model's cosines differ too little between the kinds, or if there are no pairs of one kind
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

export function judged(similarity: number): LabelledPair['same'] {
  if (similarity >= SAME_WORDS) return 'words';
  return similarity >= SAME_TASK ? 'task' : 'no';
}

/** Counts the pairs that are judged in the same way as by people. `kinds` compares all three kinds, `sameness` only whether the task is the same. */
export function countRight(scored: readonly ScoredPair[], calibrate: (cosine: number) => number) {
  const kinds = scored.filter(({ same, cosine }) => judged(calibrate(cosine)) === same).length;
  const sameness = scored.filter(({ same, cosine }) => (judged(calibrate(cosine)) === 'no') === (same === 'no')).length;
  return { pairs: scored.length, kinds, sameness };
}
