import type { Embedder } from '../ports/embedder.js';
import type { ToolDefinition } from './tool-definition.js';

export interface NearTool {
  readonly tool: ToolDefinition;
  /** Calibrated, 0 to 1. */
  readonly similarity: number;
}

/** Finds tools by meaning. Their texts are embedded once, with the first question. */
export class NearTools {
  readonly #vectors = new Map<string, Float32Array>();

  constructor(
    private readonly tools: () => readonly ToolDefinition[],
    private readonly embedder: Embedder,
  ) {}

  /** Best first. @throws EtudeError MODEL_UNAVAILABLE */
  async search(text: string, limit: number, signal: AbortSignal): Promise<readonly NearTool[]> {
    const tools = this.tools();
    const fresh = tools.filter(({ name }) => !this.#vectors.has(name));
    const [question, ...made] = await this.embedder.embed([text, ...fresh.map(textOf)], signal);
    fresh.forEach(({ name }, at) => this.#vectors.set(name, made[at] ?? new Float32Array()));
    const { profile } = this.embedder;
    return tools
      .map((tool) => ({ tool, similarity: profile.calibrate(cosine(question, this.#vectors.get(tool.name))) }))
      .toSorted((a, b) => b.similarity - a.similarity)
      .slice(0, limit);
  }
}

/** Without what depends on settings, so that one vector is good for all agents. */
const textOf = ({ title, name }: ToolDefinition): string => `${title} (${name.replaceAll('_', ' ')})`;

function cosine(a: Float32Array = new Float32Array(), b: Float32Array = new Float32Array()): number {
  let [dot, left, right] = [0, 0, 0];
  a.forEach((value, at) => {
    const other = b[at] ?? 0;
    dot += value * other;
    left += value * value;
    right += other * other;
  });
  return left === 0 || right === 0 ? 0 : dot / Math.sqrt(left * right);
}
