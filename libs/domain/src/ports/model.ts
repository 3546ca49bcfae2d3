export interface ChatToolCall {
  /** Unique within the conversation. */
  readonly id: string;
  readonly name: string;
  /** The text that the model wrote. It should be JSON, but may be invalid. */
  readonly arguments: string;
}

/** Messages with the role `tool` answer the calls of the assistant message before them, in order. */
export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly toolCalls?: readonly ChatToolCall[];
  readonly toolCallId?: string;
}

export interface ChatTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** Who pays for a call. `purpose` is a kind of step, or "consolidate", "settle", "read", "write_skill" or "rerank". */
export interface ModelAccount {
  readonly tenant: string;
  readonly agent: string;
  readonly purpose: string;
}

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  /** If absent or empty, the model can only answer with text. */
  readonly tools?: readonly ChatTool[];
  /** The records from which each section was made, by the section's heading. Only explanations use this field. It is not sent to the server. */
  readonly sources?: Readonly<Record<string, readonly string[]>>;
  /** Who pays for the call. If absent, the call is neither counted nor limited. The account is not sent to the server. */
  readonly account?: ModelAccount;
  readonly temperature?: number;
  readonly outputTokensMax?: number;
  /** Called with each part of the answer's text as it arrives. A retry starts again from the beginning. */
  readonly onText?: (text: string) => void;
}

export interface ChatResponse {
  readonly text: string;
  /** Absent if the model called no tool. */
  readonly toolCalls?: readonly ChatToolCall[];
  readonly finishReason: 'stop' | 'length';
  /** The model's name as the server reported it. */
  readonly model: string;
  /** Whether the answer came from a script instead of a model. */
  readonly scripted: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
}

/**
 * Gets one answer from a language model.
 *
 * The adapter does all retries (429 with Retry-After, 5xx, cut streams, empty answers), so callers don't retry. A server without function
 * calling gets the tools as text, and the calls are read from the answer's text.
 * @throws EtudeError MODEL_UNAVAILABLE, MODEL_RATE_LIMITED, MODEL_REFUSED, MODEL_ANSWER_EMPTY, MODEL_ANSWER_TRUNCATED; an AbortError when
 * `signal` aborts.
 * Not part of this port: prompts, parsing of answers, journaling.
 */
export interface ChatModel {
  chat(request: ChatRequest, signal: AbortSignal): Promise<ChatResponse>;
}

export function chargedTo(model: ChatModel, { tenant, agent }: Pick<ModelAccount, 'tenant' | 'agent'>, purpose: string): ChatModel {
  return { chat: (request, signal) => model.chat({ ...request, account: { tenant, agent, purpose } }, signal) };
}

/**
 * Orders texts by how well they answer a query. Not part of this port: how callers treat omitted texts and failures.
 *
 * @returns indices of `texts`, the best first @throws EtudeError MODEL_*; an AbortError
 */
export interface Reranker {
  rank(query: string, texts: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}

/** Turns texts into vectors of one length. Not part of this port: caching, searching, checking that length. @throws EtudeError MODEL_UNAVAILABLE */
export interface Embedder {
  readonly profile: EmbedderProfile;
  embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]>;
}

export interface EmbedderProfile {
  /** Name of the model, which is stored with the vectors. A service refuses to start if memory was embedded with another model. */
  readonly model: string;
  readonly dimension: number;
  /** Weight of the vector similarity in a search's score, 0 to 1. BM25 has the rest. */
  readonly denseWeight: number;
  /** Maps a raw cosine to 0 to 1: 0.7 means "probably the same task", and 0.9 "nearly the same words". A higher cosine never maps lower. */
  calibrate(cosine: number): number;
}
