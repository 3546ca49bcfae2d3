import { EtudeError } from '@etude/contracts/errors';
import type { ServerContext } from './server-errors.js';
import { faultError, faultIn, quoted, serverName } from './server-errors.js';

interface Item {
  readonly index?: unknown;
  readonly embedding?: unknown;
}

/**
 * The vectors of an embeddings answer in the order of the texts.
 *
 * @throws EtudeError MODEL_ANSWER_TRUNCATED (retryable) when vectors are missing, MODEL_ANSWER_EMPTY when there is no answer
 */
export function readVectors(answer: string, expected: number, context: ServerContext): Float32Array[] {
  const items = itemsOf(answer, context);
  const vectors: Array<Float32Array | undefined> = Array.from({ length: expected });
  items.forEach((item, position) => {
    const index = typeof item.index === 'number' ? item.index : position;
    // A server that gives every vector the index 0 still gives them in order.
    vectors[vectors[index] === undefined ? index : position] = vectorOf(item.embedding);
  });
  const whole = vectors.slice(0, expected).filter((vector) => vector !== undefined);
  if (whole.length < expected) {
    throw new EtudeError('MODEL_ANSWER_TRUNCATED', `${serverName(context)} gave ${whole.length} vectors for ${expected} texts.`);
  }
  return whole;
}

function itemsOf(answer: string, context: ServerContext): Item[] {
  if (answer.trim() === '')
    throw new EtudeError('MODEL_ANSWER_EMPTY', `${serverName(context)} answered a request for embeddings with nothing.`);
  const body = parsed(answer);
  if (body === undefined) {
    throw new EtudeError(
      'MODEL_ANSWER_TRUNCATED',
      `${serverName(context)} answered a request for embeddings with what is no JSON: ${quoted(answer, context)}`,
    );
  }
  const { data, error } = (body ?? {}) as { data?: unknown; error?: unknown };
  if (error !== undefined && error !== null) throw faultError(faultIn(error), context);
  if (Array.isArray(data)) return data as Item[];
  throw new EtudeError(
    'MODEL_REFUSED',
    `${serverName(context)} answered a request for embeddings without \`data\`: ${quoted(answer, context)} Check ${context.settings.baseUrl}.`,
  );
}

/** Numbers, or little-endian floats in base64 from a server that gives nothing else. Text that is no number becomes NaN. */
function vectorOf(embedding: unknown): Float32Array | undefined {
  if (Array.isArray(embedding)) return Float32Array.from(embedding, (value) => (typeof value === 'number' ? value : Number.NaN));
  if (typeof embedding !== 'string') return undefined;
  const bytes = Buffer.from(embedding, 'base64');
  return Float32Array.from({ length: Math.floor(bytes.length / 4) }, (_, i) => bytes.readFloatLE(i * 4));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
