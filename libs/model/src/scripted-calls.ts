/** One request to the scripted model, as it went. */
export interface ScriptedCall {
  /** From 1, in the order of arrival. */
  readonly number: number;
  readonly endpoint: 'chat' | 'embeddings';
  /** The rule that answered; null where none fitted. */
  readonly rule: string | null;
  /** `aborted`: the caller went away first. `cut`: the script said so. */
  readonly answered: 'pending' | 'fully' | 'aborted' | 'cut';
  readonly status: number;
  readonly stream: boolean;
  /** Equal for equal requests, however they are to be answered. */
  readonly bodyDigest: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Start of the last message, or of the first text to embed. */
  readonly about: string;
}

const KEPT_MAX = 10_000;
const ABOUT_CHARS = 200;

/** The last 10,000 requests; their numbers go on. */
export class ScriptedCalls {
  #calls: ScriptedCall[] = [];
  #total = 0;

  get total(): number {
    return this.#total;
  }

  list(): readonly ScriptedCall[] {
    return [...this.#calls];
  }

  add(call: Omit<ScriptedCall, 'number' | 'answered'>): (answered: ScriptedCall['answered']) => void {
    const kept = {
      ...call,
      about: call.about.slice(0, ABOUT_CHARS),
      number: ++this.#total,
      answered: 'pending' as ScriptedCall['answered'],
    };
    this.#calls.push(kept);
    if (this.#calls.length > KEPT_MAX * 1.1) this.#calls = this.#calls.slice(-KEPT_MAX);
    return (answered) => {
      if (kept.answered === 'pending') kept.answered = answered;
    };
  }
}
