/** Raw cosines of one model, strictly rising, and what they mean. */
export interface CosineAnchors {
  /** 95 of 100 pairs of texts that have nothing to do with each other are below. Read as 0.3. */
  readonly unrelated: number;
  /** "Probably the same task". Read as 0.7. */
  readonly sameTask: number;
  /** "Nearly the same words". Read as 0.9. */
  readonly sameWords: number;
}

const UNRELATED = 0.3;
const SAME_TASK = 0.7;
const SAME_WORDS = 0.9;

/** Straight lines through (0, 0), (unrelated, 0.3), (same task, 0.7), (same words, 0.9) and (1, 1); 0 below. */
export function calibration({ unrelated, sameTask, sameWords }: CosineAnchors): (cosine: number) => number {
  return through([
    [0, 0],
    [unrelated, UNRELATED],
    [sameTask, SAME_TASK],
    [sameWords, SAME_WORDS],
    [1, 1],
  ]);
}

/** Monotone, linear between points whose x rises; constant outside of them, and as below for what is no number. */
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

/** Whether the anchors can be read as a map: rising, inside 0 to 1. */
export const areAnchors = ({ unrelated, sameTask, sameWords }: CosineAnchors) =>
  unrelated >= 0 && unrelated < sameTask && sameTask < sameWords && sameWords <= 1;
