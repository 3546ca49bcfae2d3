/** Sandboxes of a controller, now. */
export interface PoolFigures {
  /** Waiting for a claim. */
  readonly ready: number;
  /** Of callers, open. */
  readonly sessions: number;
  /** Claims that wait until a sandbox is free. */
  readonly waiting: number;
}

const TIMEOUT_MS = 1_000;
const NAMES = { ready: 'etude_sandbox_warm', sessions: 'etude_sandbox_sessions', waiting: 'etude_sandbox_claims_waiting' } as const;

/** One sample without labels out of Prometheus' text format. */
function sample(text: string, name: string): number | undefined {
  const value = new RegExp(`^${name} ([0-9.e+]+)$`, 'm').exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

/** Figures out of a controller's metrics; those that it does not tell are left out. */
export function figuresOf(metrics: string): Partial<PoolFigures> {
  const found = Object.entries(NAMES).map(([figure, name]) => [figure, sample(metrics, name)] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

/** Empty where the controller does not answer: its process says why. */
export async function poolFigures(httpPort: number): Promise<Partial<PoolFigures>> {
  try {
    const answer = await fetch(`http://127.0.0.1:${httpPort}/metrics`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return figuresOf(await answer.text());
  } catch {
    return {};
  }
}
