import { type Output, plural, table } from '../output.js';
import { SCRIPTED } from '../tasks/task-lines.js';
import type { SampleResult, Summary } from './eval-result.js';
import type { EvalPlan } from './eval-store.js';

/** Without a terminal, how far it is is said this often. */
const NOTE_EVERY_MS = 10_000;

const duration = (seconds: number) => (seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.round(seconds / 60)} min`);

/** How far a run is, on stderr; each finished problem as data. */
export class EvalProgress {
  #done = 0;
  #solved = 0;
  #noted = performance.now();
  readonly #started = performance.now();

  constructor(
    private readonly out: Output,
    private readonly total: number,
    private readonly before: number,
  ) {}

  print(result: SampleResult): void {
    const { id, sample, verdict, attempts, modelCalls, seconds, skill, scripted, error } = result;
    if (result.solved) this.#solved++;
    const parts = [plural(attempts, 'attempt'), plural(modelCalls, 'model call'), `${seconds.toFixed(1)} s`];
    if (skill) parts.push(`by ${skill}`);
    if (error) parts.push(error);
    const name = sample > 1 ? `${id} #${sample}` : id;
    this.out.data(result, `${verdict.padEnd(5)} ${name.padEnd(16)} ${parts.join(', ')}${scripted ? ` ${SCRIPTED}` : ''}`);
  }

  finished(result: SampleResult): void {
    this.#done++;
    this.print(result);
    const line = this.#line();
    this.out.status(line);
    if (this.out.live || performance.now() - this.#noted < NOTE_EVERY_MS) return;
    this.#noted = performance.now();
    this.out.note(line);
  }

  end(): void {
    this.out.status('');
  }

  #line(): string {
    const done = this.before + this.#done;
    const secondsEach = (performance.now() - this.#started) / 1_000 / Math.max(1, this.#done);
    return `${done}/${this.total} done, ${this.#solved} solved, ${duration((this.total - done) * secondsEach)} to go`;
  }
}

const percent = (share: number) => `${(share * 100).toFixed(1)}%`;

export function summaryText(summary: Summary, plan: EvalPlan): string {
  const verdicts = Object.entries(summary.verdicts).toSorted(([a], [b]) => a.localeCompare(b));
  const rows = [
    ['run', `${summary.run}, memory ${plan.memory}`],
    ['problems', summary.samples > 1 ? `${summary.problems}, ${summary.samples} samples each` : String(summary.problems)],
    ...Object.entries(summary.passAtK).map(([k, share]) => [`pass@${k}`, percent(share)]),
    ['verdicts', verdicts.map(([verdict, n]) => `${verdict} ${n}`).join(', ')],
    ['attempts', String(summary.attempts)],
    ['model calls', String(summary.modelCalls)],
    ['tokens', `${summary.inputTokens} in, ${summary.outputTokens} out`],
    ['by skill', String(summary.bySkill)],
    ['time', duration(summary.seconds)],
  ];
  if (summary.scripted) rows.push(['model', `${SCRIPTED}: the answers came from a script`]);
  return `\n${table(rows)}`;
}
