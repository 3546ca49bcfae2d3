export interface ChatToolCall {
  /** Unique in its conversation. */
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it. It may be no JSON. */
  readonly arguments: string;
}

/** `tool` messages answer the calls of the assistant message before them, in order. */
export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  /** Of an assistant message. */
  readonly toolCalls?: readonly ChatToolCall[];
  /** For a tool message, the id of the call that it answers. */
  readonly toolCallId?: string;
}

/** A function that the model may call. `inputSchema` is a JSON Schema. */
export interface ChatTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** Who pays for a call, and what it is for: the kind of the step, "consolidate", "settle", "read", "write_skill" or "rerank". */
export interface ModelAccount {
  readonly tenant: string;
  readonly agent: string;
  readonly purpose: string;
}

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  /** Absent or empty: the model can only answer with text. */
  readonly tools?: readonly ChatTool[];
  /** For explanations: names of the records behind a section, by the section's heading. Not sent. */
  readonly sources?: Readonly<Record<string, readonly string[]>>;
  /** Absent: the call is neither counted nor limited. Not sent. */
  readonly account?: ModelAccount;
  readonly temperature?: number;
  readonly outputTokensMax?: number;
  /** Gets the text in parts while it is written. A retry begins again. */
  readonly onText?: (text: string) => void;
}

export interface ChatResponse {
  readonly text: string;
  /** Absent: the model called no tool. */
  readonly toolCalls?: readonly ChatToolCall[];
  readonly finishReason: 'stop' | 'length';
  /** The model's name as the server reported it. */
  readonly model: string;
  /** The answer came from a script, not from a model. */
  readonly scripted: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
}

/**
 * Gets one answer from a language model.
 *
 * The adapter does all retries (429 with Retry-After, 5xx, cut streams, empty answers); callers don't retry. Servers without function
 * calling get the tools as text, and their calls are read from the text of the answer.
 * @throws EtudeError MODEL_UNAVAILABLE, MODEL_RATE_LIMITED, MODEL_REFUSED, MODEL_ANSWER_EMPTY, MODEL_ANSWER_TRUNCATED; an AbortError when
 * `signal` aborts.
 * Not in it: prompts, parsing of answers, journaling.
 */
export interface ChatModel {
  chat(request: ChatRequest, signal: AbortSignal): Promise<ChatResponse>;
}

/** The model with this account for every call. */
export function chargedTo(model: ChatModel, { tenant, agent }: Pick<ModelAccount, 'tenant' | 'agent'>, purpose: string): ChatModel {
  return { chat: (request, signal) => model.chat({ ...request, account: { tenant, agent, purpose } }, signal) };
}

/**
 * Orders texts by how well they answer a query. Not in it: the treatment of omitted texts and of failures.
 *
 * @returns places in `texts`, best first @throws EtudeError MODEL_*; an AbortError
 */
export interface Reranker {
  rank(query: string, texts: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}

/**
 * Turns texts into vectors of one length.
 *
 * @throws EtudeError MODEL_UNAVAILABLE
 * Not in it: caching, search, checks of the length.
 */
export interface Embedder {
  readonly profile: EmbedderProfile;
  embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]>;
}

export interface EmbedderProfile {
  /** Stored with the vectors. Starting with another model is refused. */
  readonly model: string;
  readonly dimension: number;
  /** Weight of vector similarity in fused search, 0 to 1; BM25 has the rest. */
  readonly denseWeight: number;
  /** Maps a raw cosine to 0 to 1, monotonically: 0.7 means "probably the same task", 0.9 "nearly the same words". */
  calibrate(cosine: number): number;
}
