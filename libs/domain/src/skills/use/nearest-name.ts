const MISSPELLED_MAX = 2;

/** The name that was probably meant; null where none is near. Near: at most a third of its letters differ, and at least one may. */
export function nearestOf(name: string, known: readonly string[]): string | null {
  const ranked = known.map((other) => ({ other, distance: editDistance(name.toLowerCase(), other.toLowerCase()) }));
  const [best] = ranked.toSorted((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= Math.max(1, Math.floor(best.other.length / 3)) ? best.other : null;
}

/** The name that was misspelled: near, and one or two letters away. null where none is. */
export function misspelledOf(name: string, known: readonly string[]): string | null {
  const others = known.filter((other) => other !== name && editDistance(name.toLowerCase(), other.toLowerCase()) <= MISSPELLED_MAX);
  return nearestOf(name, others);
}

/** Letters to put in, take out or change (Levenshtein 1966). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 0; i < a.length; i += 1) {
    let last = i + 1;
    const next = [last];
    for (let j = 0; j < b.length; j += 1) {
      last = Math.min((row[j] ?? 0) + (a[i] === b[j] ? 0 : 1), (row[j + 1] ?? 0) + 1, last + 1);
      next.push(last);
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
