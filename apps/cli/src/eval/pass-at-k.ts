/**
 * Chance that at least one of `k` samples is right, estimated without bias from `n` samples of which `c` were:
 * 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, "Evaluating Large Language Models Trained on Code", section 2.1).
 * As a product, since the binomials overflow.
 *
 * @throws RangeError unless 0 <= c <= n and 1 <= k <= n
 */
export function passAtK(n: number, c: number, k: number): number {
  if (![n, c, k].every(Number.isInteger) || c < 0 || c > n || k < 1 || k > n)
    throw new RangeError(`no pass@${k} of ${c} right in ${n} samples`);
  if (n - c < k) return 1;
  let allWrong = 1;
  for (let i = n - c + 1; i <= n; i++) allWrong *= 1 - k / i;
  return 1 - allWrong;
}

/** Mean over problems. @param right how many samples of each problem were right, of `n` each */
export function meanPassAtK(right: readonly number[], n: number, k: number): number {
  return right.length === 0 ? 0 : right.reduce((sum, c) => sum + passAtK(n, c, k), 0) / right.length;
}
